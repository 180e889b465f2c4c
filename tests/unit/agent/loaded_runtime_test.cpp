#include "agent/loaded_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::agent {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string mapped(const std::vector<std::string>& paths) {
  std::string out =
      "55d0c8a00000-55d0c8a01000 r--p 00000000 fe:01 1573 /usr/bin/python3.11\n7f1c-7f1d rw-p 0 00:00 0 \n";
  for (const auto& path : paths) {
    for (const char* part : {"r--p", "r-xp"}) out += "7f1c2ae00000-7f1c2af00000 "s + part + " 0 fe:01 9 " + path + "\n";
  }
  return out + "7ffd1-7ffd2 rw-p 0 00:00 0 [stack]\n";
}

TEST(LoadedRuntime, IsReadFromTheMappedFiles) {
  for (const char* library : {"libmpi.so.40", "libmpich.so.12", "libmpi_cray.so.12", "libmpi.so.12.0.0"}) {
    EXPECT_EQ(loaded_runtime(mapped({"/lib/x86_64-linux-gnu/libc.so.6", "/a b/lib/"s + library})).mpi, library);
  }
  EXPECT_EQ(loaded_runtime(mapped({"/usr/lib/libmpir.so.23", "/x/libmpi/other.so", "/usr/lib/libmpiric.so"})).mpi, "");
  EXPECT_TRUE(loaded_runtime(mapped({"/v/tensorflow/libtensorflow_framework.so.2"})).tensorflow);
  EXPECT_TRUE(loaded_runtime(mapped({"/v/_pywrap_tensorflow_internal.so"})).tensorflow);
  EXPECT_TRUE(loaded_runtime(mapped({"/opt/libdrun.so.0"})).libdrun);
  const LoadedRuntime none = loaded_runtime(mapped({"/usr/lib/libtorch_cpu.so"}));
  EXPECT_EQ(none.mpi, "");
  EXPECT_FALSE(none.tensorflow || none.libdrun);
  EXPECT_EQ(loaded_runtime("").mpi, "");
}

TEST(LoadedRuntime, AWorldOfItsOwnIsTold) {
  LoadedRuntime mpi;
  mpi.mpi = "libmpi.so.40";
  const std::string plain = "HOME=/root\0RANK=1\0XPMI_RANK=1"s;
  EXPECT_THAT(alone_warning(mpi, "python3", plain, false), HasSubstr("python3 has loaded libmpi.so.40"));
  EXPECT_THAT(alone_warning(mpi, "python3", plain, false), HasSubstr("mpirun"));
  for (const std::string name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "PMI_FD"}) {
    EXPECT_EQ(alone_warning(mpi, "python3", plain + "\0"s + name + "=2", true), "") << name;
    EXPECT_EQ(alone_warning(mpi, "python3", name + "=2\0"s + plain, true), "") << name;
  }
}

TEST(LoadedRuntime, HorovodItselfIsToldUnlessSomebodyServesItsRendezvous) {
  const auto real =
      loaded_runtime(mapped({"/v/site-packages/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"}));
  EXPECT_TRUE(real.horovod);
  EXPECT_FALSE(loaded_runtime(mapped({"/v/mpi_lib_v2.so", "/v/drun/compat/horovod/x.so"})).horovod);
  EXPECT_THAT(alone_warning(real, "python3", "A=1", false), HasSubstr("rank 0 of 1; drun --compat horovod"));
  EXPECT_THAT(alone_warning(real, "python3", "A=1", false), HasSubstr("--compat real-horovod over that library"));
  EXPECT_EQ(alone_warning(real, "python3", "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1", false), "");
}

TEST(LoadedRuntime, TensorFlowWithoutAClusterIsToldOnceItHasSettled) {
  LoadedRuntime tf;
  tf.tensorflow = true;
  EXPECT_EQ(alone_warning(tf, "python3", "A=1", false), "");
  EXPECT_THAT(alone_warning(tf, "python3", "A=1", true), HasSubstr("one replica"));
  EXPECT_EQ(alone_warning(tf, "python3", "A=1\0TF_CONFIG={}"s, true), "");
  tf.libdrun = true;
  EXPECT_EQ(alone_warning(tf, "python3", "A=1", true), "");
  EXPECT_EQ(alone_warning({}, "python3", "A=1", true), "");
}

}  // namespace
}  // namespace drun::agent
