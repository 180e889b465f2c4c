"""horovod.tensorflow and horovod.keras with Keras 3, in every rank of a job of 2: scripts/test --horovod."""
import os
import tempfile
import unittest
import weakref
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import horovod.keras as hvd_keras  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
from horovod._keras import Distributed, load_model  # noqa: E402
from horovod.tensorflow import _memory  # noqa: E402
from horovod.tensorflow.aggregation import Aggregation  # noqa: E402
from horovod.tensorflow.gradients import BUCKET_BYTES, buckets  # noqa: E402

import drun  # noqa: E402  horovod finds it
from drun import _dlpack  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


class OnGpu(_memory.Shared):
    """A tensor of the CPU that says that it is on a GPU: there is none in these tests."""

    def __init__(self, tensor):
        super().__init__(tensor)
        self.is_on_gpu = True

    def __dlpack_device__(self):
        return _dlpack.CPU, 0


class Memory(unittest.TestCase):
    def results(self):
        """Of all collectives, in a graph, for a tensor of which each element is this rank's number and one."""

        @tf.function
        def all_of_them(given):
            received, rows = hvd.alltoall(given, splits=[1] + [2] * (SIZE - 1) if RANK == 0 else [2] * (SIZE - 1) + [1])
            return {"sum": hvd.allreduce(given, op=hvd.Sum), "grouped": hvd.grouped_allreduce([given, 2 * given], op=hvd.Sum),
                    "adasum": hvd.allreduce(tf.cast(given, tf.float16), op=hvd.Adasum),
                    "scaled": hvd.allreduce(tf.cast(given, tf.int64), op=hvd.Sum, postscale_factor=0.5),
                    "int32": hvd.allreduce(tf.cast(given, tf.int32), op=hvd.Max),
                    "gathered": hvd.allgather(given), "broadcast": hvd.broadcast(given, 1),
                    "received": received, "rows": rows, "scattered": hvd.reducescatter(given, op=hvd.Sum)}

        given = tf.fill([2 * SIZE - 1], RANK + 1.0)
        result = tf.nest.map_structure(lambda one: one.numpy().tolist(), all_of_them(given))
        self.assertEqual(given.numpy().tolist(), [RANK + 1.0] * (2 * SIZE - 1))  # drun writes to no tensor of others
        return result

    def test_operations_of_graphs_have_the_memory_of_tensors_where_there_are_gpus(self):
        expected = self.results()
        self.assertEqual(expected["sum"], [SIZE * (SIZE + 1) / 2] * (2 * SIZE - 1))
        seen = []

        def taken(tensor):
            seen.append(tf.is_tensor(tensor))
            return actual(tensor)

        actual = _memory.taken
        with mock.patch.object(_memory, "has_gpus", lambda: True), mock.patch.object(_memory, "taken", taken):
            self.assertEqual(self.results(), expected)
        self.assertTrue(seen and all(seen))

    def test_tensors_of_a_gpu_are_read_when_drun_s_call_has_ended(self):
        expected = self.results()
        with mock.patch.object(_memory, "has_gpus", lambda: True), mock.patch.object(_memory, "Shared", OnGpu), \
                mock.patch.object(drun, "synchronize_stream") as wait:
            self.assertEqual(self.results(), expected)
        # One for each operation but that of int32, and one more for the two that make something of drun's result: Adasum of
        # float16 and the scaled integers.
        self.assertEqual([call.args for call in wait.call_args_list], [(0,)] * 10)

    def gradients(self, in_graph):
        """Of variables of which the first, and then the last, is a single number."""
        result = []
        for shapes in ([(), (3,), (2, 2)], [(3,), (2, 2), ()], [(2,)]):
            variables = [tf.Variable(tf.ones(shape)) for shape in shapes]

            def step(variables=variables):
                with hvd.DistributedGradientTape(tf.GradientTape(), op=hvd.Sum) as tape:
                    loss = tf.add_n([tf.reduce_sum(one * one) for one in variables]) * (RANK + 1.0)
                return tape.gradient(loss, variables)

            result.append([one.numpy().tolist() for one in (tf.function(step) if in_graph else step)()])
        return result

    def test_buckets_are_of_the_tensors_memory(self):
        sums = float(SIZE * (SIZE + 1))
        for in_graph in (False, True):
            self.assertEqual(self.gradients(in_graph), [[sums, [sums] * 3, [[sums] * 2] * 2], [[sums] * 3, [[sums] * 2] * 2, sums],
                                                        [[sums] * 2]])

    def test_buckets_of_a_gpu_are_kept_until_drun_s_call_has_ended(self):
        expected, alive = self.gradients(False), []

        def wait(_):
            alive.append([one() is not None for one in given])

        def concatenated(parts):
            flat = actual(parts)
            given.append(weakref.ref(flat))
            return flat

        actual = _memory.concatenated
        for in_graph in (False, True):
            given = []
            with mock.patch.object(_memory, "has_gpus", lambda: True), mock.patch.object(_memory, "Shared", OnGpu), \
                    mock.patch.object(_memory, "concatenated", concatenated), mock.patch.object(drun, "synchronize_stream", wait):
                self.assertEqual(self.gradients(in_graph), expected)
            self.assertEqual(len(given), 3)
        self.assertEqual(len(alive), 6)
        self.assertTrue(all(one[-1] for one in alive), alive)

    def test_an_eager_result_is_its_own(self):
        given = tf.range(4, dtype=tf.float32)
        for result in (hvd.allreduce(given, op=hvd.Max), hvd.broadcast(given, 0), hvd.allgather(given)[:4]):
            self.assertEqual(result.numpy().tolist(), [0, 1, 2, 3])
            self.assertIsNot(result, given)


class Buckets(unittest.TestCase):
    def test_the_last_gradients_come_first_and_types_are_apart(self):
        tensors = {0: tf.zeros(4), 1: tf.zeros(4, tf.float64), 2: tf.zeros(4)}
        self.assertEqual(buckets(tensors, hvd.Average), [[2, 0], [1]])

    def test_a_bucket_that_is_full_is_closed(self):
        half = tf.zeros(BUCKET_BYTES // 8)  # float32
        self.assertEqual(buckets({0: half, 1: half, 2: half}, hvd.Sum), [[2, 1], [0]])

    def test_adasum_takes_each_tensor_alone(self):
        self.assertEqual(buckets({0: tf.zeros(1), 1: tf.zeros(1)}, hvd.Adasum), [[1], [0]])


class Collectives(unittest.TestCase):
    def test_numbers_without_dimensions_stay_so(self):
        self.assertEqual(hvd.allreduce(tf.constant(float(RANK)), op=hvd.Sum).shape, [])
        self.assertEqual(float(hvd.broadcast(tf.constant(float(RANK)), 1)), 1.0)

    def test_many_independent_calls_of_a_graph_don_t_wait_for_threads(self):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            several = [hvd.allreduce(tf.fill([3], float(number)), op=hvd.Sum, name=f"one {number}") for number in range(40)]
            order = several if RANK == 0 else several[::-1]
            sums = session.run(order)
        expected = [float(number * SIZE) for number in range(40)]
        self.assertEqual([one[0] for one in (sums if RANK == 0 else sums[::-1])], expected)

    def test_alltoall_without_splits_and_rows_that_differ_has_a_gradient(self):
        given = tf.fill([SIZE * (RANK + 1)], float(RANK))
        with tf.GradientTape() as tape:
            tape.watch(given)
            received = hvd.alltoall(given)
        self.assertEqual(received.numpy().tolist(), [float(rank) for rank in range(SIZE) for _ in range(rank + 1)])
        self.assertEqual(tape.gradient(received, given).shape, given.shape)

    def test_shapes_that_differ_are_an_error_on_all_ranks_and_the_next_call_works(self):
        with self.assertRaises(tf.errors.FailedPreconditionError):
            hvd.allreduce(tf.zeros(2 + RANK), name="differs")
        self.assertEqual(float(hvd.allreduce(tf.constant(1.0), op=hvd.Sum)), float(SIZE))


def train(optimizer, **options):
    """The weights after some steps, and the model. Each rank has other data, and begins with other weights."""
    keras.utils.set_random_seed(RANK)
    x = np.random.default_rng(RANK).random((32, 4), np.float32)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.1),
                              keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer=optimizer, **options)
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0), hvd_keras.callbacks.MetricAverageCallback()]
    history = model.fit(x, x.sum(1), batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
    return np.concatenate([one.ravel() for one in model.get_weights()]), model, history


class BatchNormalization(unittest.TestCase):
    def test_is_over_the_batches_of_all_ranks(self):
        everyones = np.random.default_rng(1).random((SIZE * 4, 3), np.float32)
        expected = keras.layers.BatchNormalization()(everyones, training=True).numpy()
        layer = hvd.SyncBatchNormalization()
        mine = layer(everyones[RANK * 4:RANK * 4 + 4], training=True).numpy()
        np.testing.assert_allclose(mine, expected[RANK * 4:RANK * 4 + 4], rtol=1e-4, atol=1e-5)


class Keras3(unittest.TestCase):
    def check_equal(self, mine):
        everyones = hvd.allgather(tf.constant(mine[None])).numpy()
        for rank in range(SIZE):
            np.testing.assert_array_equal(everyones[rank], mine)

    def test_ranks_train_one_model(self):
        weights, _, history = train(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)))
        self.check_equal(weights)
        self.check_equal(np.array(history.history["loss"]))

    def test_ranks_without_it_part(self):
        weights, _, _ = train(keras.optimizers.Adam(0.01))
        with self.assertRaises(AssertionError):
            self.check_equal(weights)

    def test_arguments_of_keras_2(self):
        optimizer = keras.optimizers.SGD(lr=0.25)
        self.assertEqual(float(optimizer.learning_rate), 0.25)
        self.assertEqual(float(keras.optimizers.SGD(0.5).learning_rate), 0.5)
        weights, _, _ = train(hvd_keras.DistributedOptimizer(optimizer), experimental_run_tf_function=False)
        self.check_equal(weights)
        with self.assertRaises(ValueError):
            keras.optimizers.SGD(speed=0.25)
        with self.assertRaises(TypeError):
            keras.Sequential().compile(experimental_other_function=False)

    def test_xla_is_off_even_if_asked_for(self):
        weights, model, _ = train(hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.01)), jit_compile=True)
        self.assertFalse(model.jit_compile)
        self.check_equal(weights)

    def test_float16_with_a_scaled_loss(self):
        keras.config.set_dtype_policy("mixed_float16")
        self.addCleanup(keras.config.set_dtype_policy, "float32")
        for passes in (1, 2):
            with self.subTest(passes=passes):
                optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.01), backward_passes_per_step=passes)
                weights, model, _ = train(optimizer, jit_compile=True)
                self.assertIsInstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
                self.assertFalse(model.jit_compile)
                self.check_equal(weights)
                self.check_equal(model.optimizer.dynamic_scale.numpy()[None])
                self.assertGreater(int(model.optimizer.iterations), 0)

    def test_ranks_leave_out_a_step_together(self):
        for passes in (1, 2):
            with self.subTest(passes=passes):
                inner = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(1.0), backward_passes_per_step=passes,
                                                       average_aggregated_gradients=True)
                optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=4.0)
                weight = tf.Variable([1.0])
                optimizer.build([weight])
                apply = tf.function(lambda gradient: optimizer.apply([gradient], [weight]))
                for _ in range(passes):
                    apply(tf.constant([np.inf if RANK == 0 else 4.0], tf.float32))
                self.assertEqual((float(weight[0]), float(optimizer.dynamic_scale)), (1.0, 2.0))
                for _ in range(passes):
                    apply(tf.constant([2.0 * RANK]))
                mean = sum(range(SIZE)) / SIZE
                self.assertAlmostEqual(float(weight[0]), 1.0 - mean)
                self.check_equal(weight.numpy())

    def test_gradients_that_the_caller_clips_are_reduced_once(self):
        for passes in (1, 2):
            with self.subTest(passes=passes):
                optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(1.0), op=hvd.Sum, backward_passes_per_step=passes)
                weight = keras.Variable(10.0)
                for _ in range(passes):
                    with tf.GradientTape() as tape:
                        loss = weight.value * (RANK + 1.0)
                    pairs = optimizer.compute_gradients(loss, [weight], tape)
                    optimizer.apply_gradients([(tf.clip_by_value(gradient, -100.0, 100.0), one) for gradient, one in pairs])
                self.assertEqual(float(weight.value), 10.0 - passes * sum(range(1, SIZE + 1)))

    def test_several_passes_are_one_step(self):
        weights, _, _ = train(hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.01), backward_passes_per_step=2))
        self.check_equal(weights)

    def test_a_saved_model_loads_with_and_without_it(self):
        _, model, _ = train(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded, plain = hvd_keras.load_model(path), keras.models.load_model(path)
        self.assertIs(type(plain.optimizer), keras.optimizers.Adam)
        self.assertIsNot(type(loaded.optimizer), keras.optimizers.Adam)
        self.assertEqual(int(loaded.optimizer.iterations), 8)

    def test_a_saved_model_of_float16_loads(self):
        keras.config.set_dtype_policy("mixed_float16")
        self.addCleanup(keras.config.set_dtype_policy, "float32")
        weights, model, _ = train(hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded, plain = hvd_keras.load_model(path), keras.models.load_model(path)
        self.assertIs(type(plain.optimizer.inner_optimizer), keras.optimizers.Adam)
        self.assertEqual(float(loaded.optimizer.dynamic_scale), float(model.optimizer.dynamic_scale))
        x = np.random.default_rng(RANK).random((32, 4), np.float32)
        loaded.fit(x, x.sum(1), batch_size=8, verbose=0)
        trained = np.concatenate([one.ravel() for one in loaded.get_weights()])
        self.assertFalse(np.array_equal(trained, weights))
        self.check_equal(trained)


class Passes(unittest.TestCase):
    def test_go_on_after_a_step_that_was_left_out(self):
        """As an optimizer with a loss scale around the one that aggregates does it."""
        weight = tf.Variable([1.0])
        aggregation = Aggregation(2, lambda gradients, _: gradients, False)
        results = []
        for number in (np.inf, 1.0, 2.0, 3.0):
            [result] = aggregation.compute_gradients([tf.constant([number], tf.float32)], [weight])
            results.append(float(result[0]))
        self.assertEqual(results, [0.0, np.inf, 2.0, 5.0])

    def test_of_an_optimizer_of_tensorflow_1(self):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            weight = tf.compat.v1.get_variable("weight", initializer=10.0)
            given = tf.compat.v1.placeholder(tf.float32, [])
            counted = tf.compat.v1.train.get_or_create_global_step()
            optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)
            step = optimizer.minimize(given * weight, global_step=counted)
            session.run(tf.compat.v1.global_variables_initializer())
            weights = []
            for _ in range(4):
                session.run(step, {given: RANK + 1.0})
                weights.append(float(session.run(weight)))
            self.assertEqual(int(session.run(counted)), 4)
        mean = sum(range(1, SIZE + 1)) / SIZE
        self.assertEqual(weights, [10.0, 10.0 - 2 * mean, 10.0 - 2 * mean, 10.0 - 4 * mean])


class KerasOfTensorFlow1(unittest.TestCase):
    def test_a_model_with_an_old_optimizer_loads(self):
        import tf_keras

        model = tf_keras.Sequential([tf_keras.Input((2,)), tf_keras.layers.Dense(1)])
        model.compile(loss="mse", optimizer=tf_keras.optimizers.legacy.Adam(0.5))
        model.fit(np.ones((4, 2)), np.ones(4), verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.h5")
            model.save(path)
            loaded = load_model(tf_keras, path, None, None, hvd.Compression.none)
        self.assertIsInstance(loaded.optimizer, Distributed)
        for kept, saved in zip(loaded.optimizer.variables(), model.optimizer.variables(), strict=True):
            np.testing.assert_array_equal(kept.numpy(), saved.numpy())


if __name__ == "__main__":
    unittest.main()
