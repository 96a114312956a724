//! The least that FUSE can do: shows the files of one directory, reading them with pread. The bar for reads of data that
//! needs no decoding.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen,
    Request,
};

/// The kernel may believe what it is told for this long.
const TTL: Duration = Duration::from_secs(3600);
const THREADS: usize = 4;
const ROOT: u64 = 1;

/// `passthrough DIR POINT`: serves until it is unmounted.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let [dir, point] = super::positional(arguments, "client passthrough DIR POINT")?;
    let dir = Path::new(&dir);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = File::open(entry.path())?;
        let metadata = file.metadata()?;
        ensure!(metadata.is_file(), "{name} is not a regular file");
        files.push((name, file, metadata));
    }
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::FSName("passthrough".to_owned()),
    ];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let top = dir.metadata()?;
    fuser::mount(Passthrough { top, files }, point, &config).context("cannot serve")
}

struct Passthrough {
    top: Metadata,
    /// Numbered from 2 on.
    files: Vec<(String, File, Metadata)>,
}

impl Passthrough {
    fn file(&self, number: INodeNo) -> Option<&(String, File, Metadata)> {
        let index = usize::try_from(number.0.checked_sub(ROOT + 1)?).ok()?;
        self.files.get(index)
    }
}

impl Filesystem for Passthrough {
    fn lookup(&self, _: &Request, _: INodeNo, name: &std::ffi::OsStr, reply: ReplyEntry) {
        let index = self.files.iter().position(|file| file.0.as_str() == name);
        match index.and_then(|index| Some((index, self.files.get(index)?))) {
            Some((index, (_, _, metadata))) => {
                let number = ROOT + 1 + index as u64;
                reply.entry(&TTL, &attr(number, metadata), Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.file(number) {
            Some((_, _, metadata)) => reply.attr(&TTL, &attr(number.0, metadata)),
            None if number.0 == ROOT => reply.attr(&TTL, &attr(ROOT, &self.top)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some((_, file, _)) = self.file(number) else {
            return reply.error(Errno::ENOENT);
        };
        let mut buffer = vec![0; usize::try_from(size).unwrap_or(0)];
        match file.read_at(&mut buffer, offset) {
            Ok(len) => reply.data(&buffer[..len]),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let dots = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
        ];
        let files = (ROOT + 1..).zip(&self.files);
        let files = files.map(|(number, file)| (number, FileType::RegularFile, file.0.as_str()));
        let all = (1..).zip(dots.into_iter().chain(files));
        for (next, (number, kind, name)) in all.skip(usize::try_from(offset).unwrap_or(usize::MAX))
        {
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn attr(number: u64, metadata: &Metadata) -> FileAttr {
    let time = |seconds: i64| -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    };
    FileAttr {
        ino: INodeNo(number),
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: time(metadata.atime()),
        mtime: time(metadata.mtime()),
        ctime: time(metadata.ctime()),
        crtime: UNIX_EPOCH,
        kind: if metadata.is_dir() {
            FileType::Directory
        } else {
            FileType::RegularFile
        },
        perm: u16::try_from(metadata.mode() & 0o7777).unwrap_or(0),
        nlink: 1,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
