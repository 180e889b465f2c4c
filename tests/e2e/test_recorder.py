"""The flight recorder: the ranks' calls in the failure box, the stall report and the timeline."""
import json
import os
import re
import signal

from support import ClusterTest

HOSTS = "localhost:2,host1:1,host2:1"

# Plays NCCL's RAS: listens at the address that drun has set, on the host of rank 0, then execs the program. Answers
# one question.
RAS = """
import os, socket, sys
host, port = os.environ["NCCL_RAS_ADDR"].split(":")
server = socket.create_server(("127.0.0.1", int(port)))
if os.fork() > 0:
    os.execvp(sys.argv[1], sys.argv[1:])
with server:
    one, _ = server.accept()
    with one, one.makefile() as lines:
        question = lines.readline()
        one.sendall(f"NCCL version 2.28.9 compiled with CUDA 13.0\\nasked for {question}".encode())
"""


class Recorder(ClusterTest):
    hosts = 3

    def caller(self, *actions, options=(), **more):
        return self.drun(*options, "-H", HOSTS, "drun-test-caller", *actions, **more)

    def report(self):
        return json.loads(self.cluster.shell("h0", "cat /tmp/report.json"))["first_failure"]

    def test_a_rank_that_is_killed_between_calls_is_told_with_the_call_that_the_others_wait_in(self):
        job = self.caller("repeat:20", "allreduce:grad.16", "3@sleep:0.3", "3@kill", "allreduce:grad.17",
                          options=("--report", "/tmp/report.json"))
        self.assertEqual(job.status, 137, str(job))
        self.assertRegex(job.err, r"(?m)^drun: error: rank 3 on host2 \(pid \d+\): killed by SIGKILL \(killed\) "
                                  r"while ranks 0-2 waited in allreduce #21 'grad\.17' \[worker-signal\]$")
        self.assertRegex(job.err, r"(?m)^  [|│] while ranks 0-2 waited in allreduce #21 'grad\.17'$")
        self.assertRegex(job.err, r"(?m)^  [|│] its last call, allreduce #20 'grad\.16', had ended \d+ ms before$")
        failure = self.report()
        self.assertEqual(failure["waited"], [{"call": "allreduce #21 'grad.17'", "ranks": [0, 1, 2]}])
        call = failure["first"][0]["last_call"]
        self.assertEqual((call["operation"], call["seq"], call["name"], call["communicator"], call["state"]),
                         ("allreduce", 20, "grad.16", 0, "done"))
        self.assertGreater(call["seconds"], 0.25)
        self.assertLess(call["seconds"], 10)
        self.cluster.assert_clean()

    def test_a_rank_that_is_killed_in_the_middle_of_a_call_is_told_with_it(self):
        job = self.start_drun("-H", HOSTS, "drun-test-caller", "barrier", "0@say:go", "2@recv:3")
        job.wait_for(r"\] go")
        job.finish()
        self.assertEqual(job.status, 1, str(job))  # rank 3 has left: rank 2 can't receive from it
        self.assertRegex(job.err, r"(?m)^  [|│] its last call, recv #1 from rank 3, had failed [0-9.]+ [um]?s before$")
        self.cluster.assert_clean()

        job = self.caller("barrier", "2@recv:3", "3@sleep:0.2", "3@kill", "barrier")
        self.assertEqual(job.status, 137, str(job))
        self.assertRegex(job.err, r"(?m)^  [|│] while ranks 0-1 waited in barrier #2$")
        self.assertRegex(job.err, r"(?m)^  [|│] and rank 2 waited in recv #1 from rank 3$")
        self.cluster.assert_clean()

    def test_a_rank_that_does_not_come_is_in_the_stall_report_once_and_again_when_it_came(self):
        limit = 2
        job = self.caller("allreduce:grad.16", "1@sleep:6", "allreduce:grad.17", "sleep:1", "barrier",
                          options=("--stall-timeout", str(limit)))
        self.assertEqual(job.status, 0, str(job))
        warning = re.findall(rf"(?m)^drun: warning: no progress for {limit} s in (.*)\n((?:  .*\n)*)", job.err)
        self.assertEqual([call for call, _ in warning], ["allreduce #2 'grad.17'"], str(job))
        lines = warning[0][1].splitlines()
        self.assertEqual(len(lines), 2, str(job))
        self.assertRegex(lines[0], r"^  ranks 0,2-3 have waited in it for \d+ s$")
        self.assertRegex(lines[1], r"^  rank 1 on localhost \(pid \d+\) has not called allreduce #2 'grad\.17'; "
                                   r"its last call was allreduce #1 'grad\.16', which ended \d+ s ago$")
        self.assertRegex(job.err, r"(?m)^drun: note: allreduce #2 'grad\.17' went on after \d+ s$")
        self.cluster.assert_clean()

    def test_what_nccl_says_of_the_ranks_is_in_the_stall_report(self):
        script = '[ "$DRUN_RANK" != 0 ] || exec /usr/bin/python3 -c "$RAS" "$@"; exec "$@"'
        job = self.drun("--stall-timeout", "1", "-H", HOSTS, "-x", f"RAS={RAS}", "sh", "-c", script, "sh",
                        "drun-test-caller", "barrier", "1@sleep:4", "barrier")
        self.assertEqual(job.status, 0, str(job))
        self.assertRegex(job.err, r"(?m)^drun: warning: no progress for 1 s in barrier #2$")
        self.assertIn("drun: warning: NCCL on localhost says:\n  NCCL version 2.28.9 compiled with CUDA 13.0\n  asked for status\n",
                      job.err)
        self.cluster.assert_clean()

    def test_nobody_is_told_of_ranks_that_compute_or_when_the_limit_is_0(self):
        for limit, *actions in (("2", "barrier", "sleep:4.5", "barrier"), ("0", "barrier", "1@sleep:2.5", "barrier")):
            job = self.caller(*actions, options=("--stall-timeout", limit))
            self.assertEqual((job.status, job.err), (0, ""), str(job))

    def test_time_in_which_the_job_was_stopped_is_no_stall(self):
        job = self.start_under_a_shell("--stall-timeout", "5", "-H", HOSTS, "drun-test-caller", "barrier", "0@say:go", "1@sleep:7",
                              "barrier")
        job.wait_for(r"\] go")
        drun = self.cluster.find("h0", r"^drun$")
        os.kill(drun, signal.SIGTSTP)
        self.cluster.shell("h0", "sleep 6")  # rank 1's 7 s continue to run
        with open(f"/proc/{drun}/stat", encoding="utf-8", errors="replace") as stat:
            self.assertEqual(stat.read().rsplit(") ", 1)[1][0], "T")
        os.kill(drun, signal.SIGCONT)
        self.assertEqual(job.finish(), 0, str(job))
        self.assertNotIn("no progress", job.err)
        self.cluster.assert_clean()

    def timeline(self, host="h0", path="/tmp/timeline.json"):
        """The file, and its calls by rank, in the order of the file."""
        file = json.loads(self.cluster.shell(host, f"cat {path}"))
        calls = {}
        for event in file["traceEvents"]:
            if event["ph"] == "X":
                calls.setdefault(event["tid"], []).append(event)
        return file, calls

    def test_a_timeline_has_the_same_calls_of_every_rank_at_the_same_times(self):
        job = self.good("--timeline", "/tmp/timeline.json", "-H", HOSTS, "train", "--epochs", "2")
        self.assertNotIn("warning", job.err)
        file, calls = self.timeline()
        self.assertEqual(sorted(calls), [0, 1, 2, 3])
        self.assertEqual([host["name"] for host in file["otherData"]["hosts"]], ["localhost", "host1", "host2"])
        self.assertEqual(file["otherData"]["lost"], {})
        self.assertEqual({rank: {call["pid"] for call in calls[rank]} for rank in calls}, {0: {0}, 1: {0}, 2: {1}, 3: {2}})
        off = 2 * max(host["clock_uncertainty_us"] for host in file["otherData"]["hosts"])
        self.assertLess(off, 1e5)

        def same(call):
            return call["name"], call["args"]["seq"], call["args"].get("count"), call["args"].get("dtype")
        first = [same(call) for call in calls[0]]
        self.assertGreater(len(first), 50)
        self.assertEqual([seq for _, seq, _, _ in first], list(range(1, len(first) + 1)))
        for rank, own in calls.items():
            self.assertEqual([same(call) for call in own], first, f"rank {rank}")
            end = 0
            for call in own:
                self.assertGreaterEqual(call["ts"], end - 0.002)  # rounded to ns
                self.assertGreaterEqual(call["dur"], 0)
                end = call["ts"] + call["dur"]
        n_allreduce = 0
        for together in zip(*calls.values()):
            if together[0]["name"] != "allreduce":
                continue  # no rank leaves one before all have joined it
            n_allreduce += 1
            self.assertLessEqual(max(call["ts"] for call in together),
                                 min(call["ts"] + call["dur"] for call in together) + off, together)
        self.assertGreater(n_allreduce, 50)
        self.assertEqual(self.cluster.shell("h0", "ls /tmp/timeline.json*"), "/tmp/timeline.json\n")

    def test_the_variable_asks_for_a_timeline_too_and_a_job_that_fails_has_one(self):
        job = self.drun("-H", HOSTS, "drun-test-caller", "barrier", "3@sleep:0.3", "3@kill", "allreduce:grad.17",
                        env={"DRUN_TIMELINE": "/tmp/failed.json"})
        self.assertEqual(job.status, 137, str(job))
        _, calls = self.timeline(path="/tmp/failed.json")
        self.assertEqual([call["name"] for call in calls[3]], ["barrier"])
        for rank in (0, 1, 2):
            self.assertEqual([(call["name"], call["args"]["seq"]) for call in calls[rank]], [("barrier", 1), ("allreduce", 2)])
            last = calls[rank][1]
            self.assertEqual(last["args"]["name"], "grad.17")
            self.assertGreater(last["dur"], 2e5)
            self.assertTrue("status" in last["args"] or "unfinished" in last["args"], last)
        job = self.good("-H", HOSTS, "env", env={"DRUN_TIMELINE": "/tmp/none.json"})
        self.assertNotIn("DRUN_TIMELINE", job.out)
        self.assertEqual(self.timeline(path="/tmp/none.json")[1], {})

    def test_a_timeline_that_can_not_be_written_shows_before_anything_starts(self):
        job = self.drun("--timeline", "/no/such/folder/t.json", "-H", HOSTS, "echo", "started")
        self.assertEqual((job.status, job.out), (2, ""), str(job))
        self.assertIn("drun: error: --timeline: /no/such/folder/t.json: no such file or directory", job.err)
