"""The tables and scripts of docs/migrating.md for other launchers: each line is run, and must do what it says."""
import os
import re
import shlex

from support import ClusterTest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/migrating.md")
RANK = "echo rank=$RANK of=$WORLD_SIZE local=$LOCAL_RANK node=$NODE_RANK"
NAME = "echo $(hostname) of=$WORLD_SIZE"
ABSENT = ("none", "leave it out")
TRAIN = """import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "local", os.environ["LOCAL_RANK"], *sys.argv[1:])
print("LR", os.environ.get("LR"), "FROM_FILE", os.environ.get("FROM_FILE"))
"""
FILES = {
    "drun.toml": 'ssh-port = 12345\n[hosts]\nall = ["localhost:1", "host1:1"]\n',
    "hosts": "# two machines\nlocalhost slots=2\nhost1 slots=2\n",
    "hosts.mpich": "localhost:2\nhost1:2\n",
    ".deepspeed_env": "FROM_FILE=yes\n",
    "activate": "export LR=activated\n",
    "train.py": TRAIN,
}
TWO = "-H localhost,host1"
FOUR = [rf"rank={rank} of=4 local={rank % 2} node={rank // 2}" for rank in range(4)]


def row(*out, more="", script=RANK, absent=(), err=(), status=0, limit=None, text=None, after=None):
    """A line of a table: `more` options, the workers' shell script, what must and must not be in the output; `limit`
    replaces the hour of an example; `text` is drun's input; `after`: a shell script and a line of its output."""
    return {"out": out, "more": more, "script": script, "absent": absent, "err": err, "status": status, "limit": limit,
            "text": text, "after": after}


# By the options in the middle column.
OPTIONS = {
    "-np 4": row("rank=3 of=4"),
    "-np 2": row("rank=1 of=2"),
    "-H localhost:2,host1:2": row(*FOUR),
    "-H localhost:2": row("rank=1 of=2", absent=["of=4"]),
    TWO: row("rank=0 of=2 local=0 node=0", "rank=1 of=2 local=0 node=1"),
    "-H root@localhost": row("rank=0 of=1"),
    "-H @all": row("rank=1 of=2 local=0 node=1"),
    "--hostfile hosts": row(*FOUR),
    "--exclude localhost": row(r"\[1\] h1 of=2", more="--hostfile hosts", script=NAME, absent=["h0 "]),
    "--exclude host1": row(r"\[1\] h0 of=2", more="--hostfile hosts", script=NAME, absent=["h1 "]),
    "-hosts localhost,host1": row("rank=0 of=2 local=0 node=0", "rank=1 of=2 local=0 node=1"),
    "-f hosts.mpich": row(*FOUR),
    "--nproc-per-node 2": row(*FOUR, more=TWO),
    "-ppn 2": row(*FOUR, more="-H localhost:4,host1:2"),
    "--nproc-per-node 1": row("rank=1 of=2 local=0 node=1", more=TWO),
    "--oversubscribe": row("rank=3 of=4", more="-np 4 -H localhost:1"),
    "--bind-to core": row(r"\[0\] fewer$", r"\[1\] fewer$", more="-np 2",
                           script="[ $(nproc) -lt $(nproc --all) ] && echo fewer"),
    "-bind-to core": row("rank=0 of=1"),
    "--bind-to numa": row("rank=0 of=1"),
    "-v --bind-to core": row(err=[r"rank 0 on localhost: core"]),
    "-x NAME": row("name=given", script="echo name=$NAME", more=f"{TWO} --env none"),
    "-x NAME=VALUE": row("name=VALUE", script="echo name=$NAME", more=TWO),
    "-x NAME -x OTHER": row("given and other", script="echo $NAME and $OTHER", more=f"{TWO} --env none"),
    "-x MASTER_PORT=29500": row("port=29500", script="echo port=$MASTER_PORT", more=TWO),
    "--env none": row(r"\[0\] name=$", r"\[1\] name=$", script="echo name=$NAME", more=TWO),
    "--env all": row(r"\[0\] name=given", r"\[1\] name=given", script="echo name=$NAME", more=TWO),
    "--env-file .deepspeed_env": row("yes", script="echo $FROM_FILE"),
    "--wdir /tmp": row("/tmp$", script="pwd", more=TWO),
    "-wdir /tmp": row("/tmp$", script="pwd", more=TWO),
    "--stdin 1": row(r"\[1\] typed", script="cat", more="-np 2", text="typed\n", absent=[r"\[0\] typed"]),
    "--tag-output": row(r"^\[0\] rank=0"),
    "-prepend-rank": row(r"^\[0\] rank=0"),
    "--tag-output=host": row(r"^\[localhost:0\] ", r"^\[host1:1\] ", more=TWO),
    "--no-tag-output": row("^rank=0", "^rank=1", more="-np 2"),
    "--merge-stderr-to-stdout": row(r"^\[1\] words", more="-np 2", script="echo words >&2"),
    "--timestamp-output": row(r"^\d\d:\d\d:\d\d\.\d{3} rank=0"),
    "--output-filename logs": row(r"\[0\] rank=0", more="-np 2", after=("cat logs/rank.1/stdout", "^rank=1")),
    "--ranks 0": row("rank=0", more="-np 2", absent=["rank=1"]),
    "--timeout 3600": row(script="sleep 100", limit="0.3", status=75, err=["did not end within", "sleep"]),
    "--dry-run": row("localhost: rank 0", absent=["rank=0"]),
    "-p 12345": row("rank=1 of=2", more=f"--config none {TWO}"),
    "--launch-agent ssh": row("rank=1 of=2 local=0 node=1", more=TWO),
    "--network-interfaces 10.77.0.0/24": row(r"10\.77\.0\.", script="echo $MASTER_ADDR", more=TWO),
    "-iface 10.77.0.0/24": row(r"10\.77\.0\.", script="echo $MASTER_ADDR", more=TWO),
    "--report report.json": row(more="-np 2", after=("grep -c '\"status\"' report.json", "[1-9]")),
    "--check-build": row("drun"),
    "--grace 30": row(script="trap 'sleep 0.2; echo saved >saved; exit' TERM; sleep 100 & wait", status=75,
                      more="--timeout 1.5 --stack-timeout 0", after=("cat saved", "saved")),
    "--start-timeout 600": row("rank=0"),
    "--start-timeout 10": row("rank=0"),
    "-v": row("rank=0", err=["drun"]),
}
# Commands in the middle column, each with a line of its output.
COMMANDS = {
    "sh -c 'if [ $RANK = 0 ]; then exec echo a; else exec echo b; fi'": r"\[0\] a\n\[1\] b|\[1\] b\n\[0\] a",
    "python3 -m json.tool --help": r"\[1\] usage",
    "sh -c 'echo rank $RANK'": r"\[1\] rank 1",
    "bash -c '. ./activate && exec python3 train.py'": r"\[1\] LR activated",
}
# A line that each script of the page prints, in their order.
SCRIPTS = [
    r"\[3\] LR 0\.1", r"\[3\] rank 3 of 4 local 1 --lr 0\.1", r"\[1\] rank 1 of 2 local 1$",
    r"\[3\] rank 3 of 4 local 1 --deepspeed --deepspeed_config ds\.json", r"\[1\] rank 1 of 2 local 1$",
    r"\[3\] LR None FROM_FILE yes", r"\[3\] rank 3 of 4 local 1 --local_rank=1 --lr 0\.1", r"^\[host1:1\] \d+\.",
]


def page():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    return text[text.index("\n## From mpirun\n"):]


def rows():
    """(first cell, middle cell) of all tables."""
    for line in re.findall(r"^\| (.*) \|$", page(), re.M):
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) > 1 and not set(line) <= set("|- ") and cells[1] != "drun":
            yield cells[0], cells[1].rstrip(" |")


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


class Migrating(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        files = "".join(f"cat >{name} <<'END'\n{text}END\n" for name, text in FILES.items())
        for host in ("h0", "h1"):
            cls.cluster.shell(host, f"mkdir work && cd work\n{files}")

    def job(self, *arguments, **options):
        return self.drun(*arguments, cwd="/root/work", env={"NAME": "given", "OTHER": "other"}, **options)

    def check_options(self, options):
        wanted = OPTIONS[options]
        typed = options.replace("3600", wanted["limit"]) if wanted["limit"] else options
        job = self.job(*shlex.split(wanted["more"]), *shlex.split(typed), "sh", "-c", wanted["script"],
                       stdin_text=wanted["text"])
        self.assertEqual(job.status, wanted["status"], str(job))
        for stream, patterns in ((job.out, wanted["out"]), (job.err, wanted["err"])):
            for pattern in patterns:
                self.assertRegex(stream, re.compile(pattern, re.M), str(job))
        for pattern in wanted["absent"]:
            self.assertNotRegex(job.out, re.compile(pattern, re.M), str(job))
        if wanted["after"]:
            script, line = wanted["after"]
            self.assertRegex(self.cluster.shell("h0", script, cwd="/root/work"), re.compile(line, re.M))

    def test_every_line_of_the_tables(self):
        lines = list(rows())
        self.assertGreater(len(lines), 80)
        used = set()
        for theirs, ours in lines:
            with self.subTest(theirs):
                word = ours if ours in ABSENT else code(ours)[0]
                if word in used or word in ABSENT:
                    continue
                used.add(word)
                if word.startswith("-"):
                    self.check_options(word)
                elif re.fullmatch(r"[A-Z_]+", word):
                    job = self.job("-H", "localhost,host1", "sh", "-c", f"echo value=${word}")
                    self.assertRegex(job.out, re.compile(r"^\[1\] value=.", re.M), f"{word}: {job}")
                else:
                    job = self.job("-np", "2", *shlex.split(word))
                    self.assertRegex(job.out, re.compile(COMMANDS[word], re.M), str(job))
        self.assertEqual({*OPTIONS, *COMMANDS} - used, set(), "checks of lines that the page no longer has")
        self.cluster.assert_clean()

    def test_what_drun_does_not_have_is_refused(self):
        options = [word for theirs, ours in rows() if ours in ABSENT for word in code(theirs)
                   if word.startswith("-") and " : " not in word]
        self.assertGreater(len(options), 40)
        commands = [shlex.join(["drun", *shlex.split(option), "true"]) for option in options]
        script = "".join(f"{command} >/dev/null 2>&1; echo $?\n" for command in commands)
        statuses = self.cluster.shell("h0", script, cwd="/root/work").split()
        self.assertEqual(dict(zip(commands, statuses)), dict.fromkeys(commands, "2"))

    def test_every_script(self):
        scripts = re.findall(r"^```bash\n(.*?)^```$", page(), re.M | re.S)
        self.assertEqual(len(scripts), len(SCRIPTS))
        for script, line in zip(scripts, SCRIPTS):
            with self.subTest(script):
                job = self.cluster.run("h0", "bash", "-c", script, cwd="/root/work")
                self.assertEqual(job.status, 0, str(job))
                self.assertRegex(job.out, re.compile(line, re.M), str(job))
        self.cluster.assert_clean()
