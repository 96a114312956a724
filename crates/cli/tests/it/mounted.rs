//! The driver as systems use it: from fstab, below an overlay, with memory and readers coming and going.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::io_uring::Offer;
use durin_testkit::mount::{self, Mount, is_mount_point};
use durin_testkit::over::Over;
use durin_testkit::{require, skip};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::Place;

fn driver() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dwarfs"))
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs a command with the driver found by name; programs of the system are found, too.
fn with_path(program: &str) -> Command {
    let programs = driver().parent().unwrap().display().to_string();
    let mut command = Command::new(program);
    command.env("PATH", format!("{programs}:/usr/sbin:/sbin:/usr/bin:/bin"));
    command
}

fn check_output(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Needs root and the helper that mount(8) runs for file systems of FUSE.
fn can_mount_by_type() -> Result<(), String> {
    mount::available()?;
    if !skip::is_root() {
        return Err("mount(8) is for root".to_owned());
    }
    if Path::new("/sbin/mount.fuse").exists() || Path::new("/sbin/mount.fuse3").exists() {
        return Ok(());
    }
    Err("no mount.fuse3".to_owned())
}

/// mount(8) looks for drivers in the system's folders only, so this one is named by its path.
#[test]
fn mount_runs_the_driver_and_takes_lines_of_fstab() {
    require!(can_mount_by_type());
    let place = Place::new();
    let point = place.path("point");
    fs::create_dir(&point).unwrap();
    let source = format!("{}#{}", driver().display(), place.image().display());
    let mut directly = Command::new("mount");
    directly.args(["-t", "fuse", "-o", "ro,nodev,cachesize=16m"]);
    check_output(&run(directly.arg(&source).arg(&point)));
    assert_eq!(fs::read(point.join("hello")).unwrap(), b"hello\n");
    mount::unmount(&point).unwrap();

    let fstab = place.path("fstab");
    let options = "noauto,user,x-a=b,nofail,workers=1";
    let line = format!("{source} {} fuse {options} 0 0\n", point.display());
    fs::write(&fstab, line).unwrap();
    let mut by_fstab = Command::new("mount");
    check_output(&run(by_fstab.arg("-T").arg(&fstab).arg(&point)));
    assert_eq!(fs::read(point.join("hello")).unwrap(), b"hello\n");
    mount::unmount(&point).unwrap();
}

#[test]
fn an_overlay_takes_changes() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("overlays are for root");
        return;
    }
    let place = Place::new();
    let lower = Mount::new(driver(), &place.image(), &["allow_other"]);
    let [upper, work, point] = ["upper", "work", "point"].map(|name| place.path(name));
    // An overlay cannot have another overlay as its upper layer, which the root of a container often is.
    let memory = place.path("memory");
    fs::create_dir(&memory).unwrap();
    check_output(&run(Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(&memory)));
    let [upper, work] = [upper, work].map(|path| memory.join(path.file_name().unwrap()));
    for dir in [&upper, &work, &point] {
        fs::create_dir(dir).unwrap();
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.path().display(),
        upper.display(),
        work.display()
    );
    let mounted = run(Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options])
        .arg(&point));
    if mounted.status.success() {
        fs::write(point.join("hello"), "changed\n").unwrap();
        fs::create_dir(point.join("sub/new")).unwrap();
        fs::write(point.join("sub/new/file"), "new\n").unwrap();
        fs::rename(point.join("hello"), point.join("sub/new/moved")).unwrap();
        fs::rename(point.join("sub/soft"), point.join("sub/new/soft")).unwrap();
        install_a_package(&point);
        assert_eq!(fs::read(point.join("sub/new/moved")).unwrap(), b"changed\n");
        assert!(!point.join("hello").exists());
        assert_eq!(fs::read(lower.path().join("hello")).unwrap(), b"hello\n");
        mount::unmount(&point).unwrap();
    }
    mount::unmount(&memory).unwrap();
    check_output(&mounted);
}

/// A package made here, installed by the system's program for that into a root of its own, where there is one.
fn install_a_package(root: &Path) {
    let source = root.join("sub/package");
    fs::create_dir_all(source.join("DEBIAN")).unwrap();
    fs::create_dir_all(source.join("usr/share/durin-test")).unwrap();
    fs::write(source.join("usr/share/durin-test/file"), "installed\n").unwrap();
    let control = "Package: durin-test\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: test\n";
    fs::write(source.join("DEBIAN/control"), control).unwrap();
    let package = root.join("sub/durin-test.deb");
    let built = with_path("dpkg-deb")
        .args(["--root-owner-group", "-b"])
        .args([&source, &package])
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        skip::skipped("no dpkg-deb: no package is installed into the overlay");
        return;
    }
    let mut install = with_path("dpkg");
    install
        .arg(format!("--root={}", root.display()))
        .args(["--force-script-chrootless", "-i"])
        .arg(&package);
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    check_output(&run(&mut install));
    let installed = root.join("usr/share/durin-test/file");
    assert_eq!(fs::read(installed).unwrap(), b"installed\n");
}

#[test]
fn many_open_files_and_processes() {
    require!(mount::available());
    let place = Place::new();
    let mounted = Mount::new(driver(), &place.image(), &[]);
    let path = mounted.path().join("hello");
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum.map(|most| most.min(8192)).or(Some(8192)),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let count = raised.current.unwrap().saturating_sub(500).min(5000);
    assert!(count > 500, "the system allows {raised:?}");
    let files: Vec<_> = (0..count).map(|_| fs::File::open(&path).unwrap()).collect();
    let children: Vec<_> = (0..100)
        .map(|_| {
            let mut cat = Command::new("cat");
            cat.arg(&path).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        assert_eq!(child.wait_with_output().unwrap().stdout, b"hello\n");
    }
    drop(files);
    assert_eq!(mounted.unmount(), None);
}

/// A program that lies in the image is mapped by each process that runs it, and by those that they start.
#[test]
fn many_processes_run_a_program_from_the_mount() {
    require!(mount::available());
    let place = Place::new();
    fs::copy("/bin/sh", place.tree().join("shell")).unwrap();
    let script =
        "for i in 1 2 3 4 5 6 7 8; do \"$0\" -c 'read line < hello; echo $line' & done; wait";
    fs::write(place.tree().join("script"), script).unwrap();
    let mounted = Mount::new(driver(), &place.image(), &["cachesize=1m"]);
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut shell = Command::new(mounted.path().join("shell"));
            shell.current_dir(mounted.path()).arg("-c").arg(script);
            // The name that the script calls itself by.
            shell.arg(mounted.path().join("shell"));
            shell.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"hello\n".repeat(8));
    }
    assert_eq!(mounted.unmount(), None);
}

/// Whoever takes a mount away under its readers gets it out of sight; the readers come to an end, and so does the driver.
#[test]
fn readers_may_be_at_work_when_it_is_unmounted() {
    require!(mount::available());
    let place = Place::new();
    fs::write(place.tree().join("large"), vec![b'x'; 3_000_000]).unwrap();
    let image = place.image();
    let offer = Offer::new();
    let lazily: &[&[&str]] = if skip::is_root() {
        &[&["fusermount3", "-u", "-z"], &["umount", "-l"]]
    } else {
        &[&["fusermount3", "-u", "-z"]]
    };
    for way in lazily {
        let mounted = Mount::foreground(driver(), &image, &["no_cache_files"]);
        let mut held = fs::File::open(mounted.path().join("large")).unwrap();
        let over = Over::default();
        std::thread::scope(|scope| {
            let guard = over.guard();
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.is_over() {
                        fs::read(mounted.path().join("large")).ok();
                    }
                });
            }
            let busy = run(Command::new("fusermount3").arg("-u").arg(mounted.path()));
            assert!(!busy.status.success(), "somebody reads");
            assert!(is_mount_point(mounted.path()));
            check_output(&run(Command::new(way[0])
                .args(&way[1..])
                .arg(mounted.path())));
            drop(guard);
        });
        assert!(!is_mount_point(mounted.path()));
        let mut rest = Vec::new();
        held.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 3_000_000);
        drop(held);
        assert_eq!(mounted.unmount(), Some(0), "{way:?}");
    }
    drop(offer);
}

/// Each thread and each ring of io_uring needs some. What cannot be had is done without, or is an error; nobody waits for it.
#[test]
fn few_descriptors_are_enough_or_an_error() {
    require!(mount::available());
    let place = Place::new();
    let (image, point) = (place.image(), place.path("point"));
    fs::create_dir(&point).unwrap();
    let _offer = Offer::new();
    let mut mounted = 0;
    for count in 4..24 {
        let script = format!("ulimit -n {count}; exec timeout 60 \"$0\" \"$1\" \"$2\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(driver());
        let output = run(command.arg(&image).arg(&point));
        assert_eq!(is_mount_point(&point), output.status.success(), "{count}");
        if output.status.success() {
            let mut cat = Command::new("timeout");
            let found = run(cat.args(["60", "cat"]).arg(point.join("hello")));
            assert_eq!(found.stdout, b"hello\n", "{count}");
            mount::unmount(&point).unwrap();
            mounted += 1;
        }
    }
    assert!(mounted > 0, "no number of them was enough");
}

/// With names in the system's folders, as after an installation; a namespace of mounts keeps that from everybody else.
#[test]
fn mount_finds_the_driver_by_type() {
    require!(can_mount_by_type());
    let place = Place::new();
    let point = place.path("point");
    fs::create_dir_all(&point).unwrap();
    fs::create_dir_all(place.path("layer")).unwrap();
    let image = place.image();
    let options = "noauto,nofail,ro,allow_other,uid=70000,gid=5,x-systemd.automount,x-systemd.idle-timeout=60,_netdev";
    let line = |kind: &str| {
        format!(
            "{} {} {kind} {options} 0 0\n",
            image.display(),
            point.display()
        )
    };
    fs::write(place.path("fstab.fuse.dwarfs"), line("fuse.dwarfs")).unwrap();
    fs::write(place.path("fstab.dwarfs"), line("dwarfs")).unwrap();
    let script = r#"
        mount -t tmpfs tmpfs "$1/layer"
        mkdir "$1/layer/upper" "$1/layer/work"
        ln -s "$2" "$1/layer/upper/dwarfs"
        ln -s "$2" "$1/layer/upper/mount.dwarfs"
        mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$1/layer/upper,workdir=$1/layer/work" /usr/sbin
        look() {
            stat -c '%u:%g' "$1/point/hello"
            cat "$1/point/hello"
            findmnt -n -o FSTYPE,OPTIONS "$1/point"
            umount "$1/point"
        }
        for kind in fuse.dwarfs dwarfs; do
            mount -t "$kind" -o uid=70000,gid=5,ro "$3" "$1/point"
            look "$1"
            mount -T "$1/fstab.$kind" "$1/point"
            look "$1"
        done
    "#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script, "sh"]);
    command.arg(place.path("")).arg(driver()).arg(&image);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = run(&mut command);
    check_output(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("70000:5\nhello\n").count(), 4, "{text}");
    assert_eq!(text.matches("fuse.dwarfs").count(), 4, "{text}");
    assert_eq!(text.matches("allow_other").count(), 2, "{text}");
}

/// In a namespace with a `/dev` of its own, so that the system's log is ours.
#[test]
fn messages_of_a_driver_in_the_background_go_to_the_systems_log() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("namespaces of mounts are for root");
        return;
    }
    let place = Place::new();
    let image = place.image();
    let mut bytes = fs::read(&image).unwrap();
    // The first byte of the first block, behind its header.
    bytes[64] ^= 0xff;
    fs::write(&image, bytes).unwrap();
    fs::create_dir(place.path("point")).unwrap();
    let log = UnixDatagram::bind(place.path("log")).unwrap();
    log.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let script = "mount -t tmpfs tmpfs /dev
        mknod /dev/fuse c 10 229; mknod /dev/null c 1 3; ln -s \"$1/log\" /dev/log
        \"$2\" \"$3\" \"$1/point\"
        ! cat \"$1/point/hello\"; umount \"$1/point\"";
    let mut command = with_path("unshare");
    command.args(["-m", "sh", "-ec", script, "sh"]);
    command.arg(place.path("")).arg(driver()).arg(&image);
    check_output(&run(&mut command));
    let mut packet = [0; 1024];
    let len = log.recv(&mut packet).unwrap();
    let text = String::from_utf8_lossy(&packet[..len]);
    assert!(text.starts_with("<27>"), "{text}");
    assert!(
        text.contains(" dwarfs[") && text.contains("block 0"),
        "{text}"
    );
}

#[test]
fn an_aborted_connection_leaves_no_dead_mount() {
    require!(mount::available());
    if !skip::is_root() {
        skip::skipped("only root may abort");
        return;
    }
    let place = Place::new();
    let mounted = Mount::new(driver(), &place.image(), &[]);
    assert!(is_mount_point(mounted.path()));
    let device = fs::metadata(mounted.path()).unwrap();
    let minor = rustix::fs::minor(std::os::unix::fs::MetadataExt::dev(&device));
    let control = place.path("control");
    fs::create_dir(&control).unwrap();
    check_output(&run(Command::new("mount")
        .args(["-t", "fusectl", "fusectl"])
        .arg(&control)));
    let aborted = fs::write(control.join(minor.to_string()).join("abort"), "1");
    mount::unmount(&control).unwrap();
    aborted.unwrap();
    let begun = Instant::now();
    while is_mount_point(mounted.path()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "it still stands");
        std::thread::sleep(Duration::from_millis(5));
    }
}
