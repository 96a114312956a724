use std::{path::Path, sync::Arc};
use durin_fuse::{FsOptions, MountOptions, Quiet};
use durin_reader::{Image, ImageOptions};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let source = durin_source::open(Path::new(&a[1]), durin_source::OpenMode::Mmap).unwrap();
    let image = Arc::new(Image::open(source, &ImageOptions::default()).unwrap());
    let mut m = MountOptions::default();
    for o in durin_fuse::options::split(a.get(3).map_or("", |s| s)) { m.set(&o).unwrap(); }
    durin_fuse::mount(image, Path::new(&a[2]), &FsOptions::default(), &m, Arc::new(Quiet)).unwrap().run().unwrap();
}
