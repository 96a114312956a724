//! Every image with a manifest, walked and read through the kernel.

use durin_testkit::compare::{self, Seen};
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::{Mount, ready};

#[test]
fn every_image_is_as_its_manifest_says() {
    let vectors = require!(ready());
    for image in vectors.with_manifest() {
        let manifest = Vectors::manifest(&image);
        let mount = Mount::new(&image);
        let tree = snapshot(
            mount.path(),
            &TreeOptions {
                digest: Digest::Full,
            },
        )
        .unwrap();
        let differences = compare::manifest(&manifest, &tree, Seen::Mounted);
        compare::assert_same(&image.display().to_string(), &differences);
        assert_eq!(mount.messages(), [""; 0]);
    }
}
