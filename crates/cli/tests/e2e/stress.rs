//! Trees that take much memory, small forms of what `cargo xtask stress` builds: each within its limit, repetitions found.
//!
//! Where no control group can be made, as in most containers, resident memory is sampled instead.

use durin_testkit::stress::{Case, Scale, Trial};

use crate::support::{programs, work_dir};

fn check(case: Case) {
    let work = work_dir();
    let trial = Trial {
        programs: &programs(),
        work: work.path(),
        case,
        scale: Scale::Quick,
        build_args: &["-l7"],
        finds_repetitions: true,
        limit_mib: 400,
        kill_mib: 500,
    };
    let report = trial.run().unwrap();
    assert_eq!(report.problems, [""; 0], "{report:?}");
}

#[test]
fn many_small_files() {
    check(Case::Million);
}

#[test]
fn a_huge_sparse_file() {
    check(Case::Sparse);
}

#[test]
fn near_duplicates_at_odd_offsets() {
    check(Case::Near);
}

#[test]
fn shifted_disk_images() {
    check(Case::Images);
}
