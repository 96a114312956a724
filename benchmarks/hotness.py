#!/usr/bin/env python3
"""Shows what the hotness loop is worth: a Python interpreter that imports a large library, started from an image.

    python3 hotness.py ROOT PROGRAMS [RUNS] [-- MKDWARFS OPTIONS]

ROOT is a directory with a root file system in which /usr/bin/python3 runs (the corpus rootfs), PROGRAMS the folder of
mkdwarfs and dwarfs. Needs root, for chroot and to empty the caches of the kernel.
Three mounts take turns: an image as it is (plain), an image with the files of a first run put first (listed), and the same
with `preload_category=hotness` (preloaded). Printed are medians of wall time, CPU time of the client and of the driver, and
how many reads had to decode.
"""
import os, re, resource, statistics, subprocess, sys, tempfile, time

IMPORTS = """asyncio, argparse, ast, calendar, codecs, concurrent.futures, configparser, csv, ctypes, dataclasses, datetime,
decimal, difflib, doctest, email.mime.text, fractions, ftplib, http.client, http.server, imaplib, inspect, json, logging.config,
lzma, multiprocessing.pool, optparse, pickle, platform, pydoc, random, smtplib, sqlite3, ssl, statistics, tarfile, tempfile,
timeit, tokenize, trace, typing, unittest.mock, urllib.request, uuid, venv, xml.dom.minidom, xml.etree.ElementTree,
xmlrpc.client, zipfile, pip._internal.cli.main_parser, pip._internal.commands.install, pip._vendor.rich.console"""
CLIENT = "import importlib\nfor name in %r:\n    try: importlib.import_module(name)\n    except ImportError: pass\n" % (
    [name.strip() for name in IMPORTS.replace("\n", " ").split(",")],)
PERFMON = "user.dwarfs.driver.perfmon"


def driver_cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(dwarfs, image, options, work, settle):
    """One fresh mount, one start of the client; returns wall, client CPU, driver CPU, decodes."""
    point = os.path.join(work, "mnt")
    os.makedirs(point, exist_ok=True)
    os.sync()
    open("/proc/sys/vm/drop_caches", "w").write("3\n")
    subprocess.run([dwarfs, image, point, "-o", ",".join(["perfmon=block_cache", *options])], check=True)
    try:
        pid = int(os.getxattr(point, "user.dwarfs.driver.pid"))
        time.sleep(settle)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(["chroot", point, "/usr/bin/python3", "-S", "-c", "import site; site.main()\n" + CLIENT],
                       check=True, env={"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        figures = os.getxattr(point, PERFMON).decode()
        decodes = re.search(r"\[block_cache\.decode\]\n +samples: (\d+)", figures)
        return wall, client, driver_cpu(pid), int(decodes.group(1)) if decodes else 0
    finally:
        subprocess.run(["umount", point], check=True)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)


def main():
    arguments = sys.argv[1:]
    options = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1:]
    root, programs = arguments[:2]
    runs = int(arguments[2]) if len(arguments) > 2 else 5
    mkdwarfs, dwarfs = (os.path.join(programs, name) for name in ("mkdwarfs", "dwarfs"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as work:
        plain, tuned, listed = (os.path.join(work, name) for name in ("plain", "tuned", "list"))
        build = [mkdwarfs, "-i", root, "--with-devices", "--progress=none", "--log-level=warn", *options]
        subprocess.run([*build, "-o", plain], check=True)
        run(dwarfs, plain, [f"analysis_file={listed}"], work, 0)
        print(f"{sum(1 for _ in open(listed, 'rb'))} files are used")
        subprocess.run([*build, "-o", tuned, "--categorize=hotness", f"--hotness-list={listed}",
                        "--order", f"hotness::explicit:file={listed}"], check=True)
        # What is preloaded is there when a user gets to start something; both get the same time for it.
        ways = [("plain", plain, [], 0.0), ("listed", tuned, [], 0.0),
                ("preloaded", tuned, ["preload_category=hotness"], 0.0),
                ("preloaded 1 s before", tuned, ["preload_category=hotness"], 1.0)]
        samples = {name: [] for name, *_ in ways}
        for _ in range(runs):
            for name, image, extra, settle in ways:
                samples[name].append(run(dwarfs, image, extra, work, settle))
        print(f"| mount ({runs} runs, medians) | wall s | of plain | client CPU s | driver CPU s | of plain | reads that decode |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        base = [statistics.median(column) for column in zip(*samples["plain"])]
        for name, rows in samples.items():
            wall, client, driver, decodes = (statistics.median(column) for column in zip(*rows))
            print(f"| {name} | {wall:.2f} | {wall / base[0]:.2f} | {client:.2f} | {driver:.2f} |"
                  f" {driver / max(base[2], 0.01):.2f} | {decodes:.0f} |")


if __name__ == "__main__":
    main()
