//! The attributes that an entry gets in the image: its own, changed as the options ask for, or by a script.

use crate::mode;
use crate::options::BuildOptions;
use crate::script::Attributes;
use crate::status::Time;
use crate::tree::{EntryIndex, Tree};

/// Returns the attributes that an entry has in the input.
pub(crate) fn own(tree: &Tree, index: EntryIndex) -> Attributes {
    let entry = tree.entry(index);
    let further = tree.further_times.get(index as usize);
    Attributes {
        permissions: entry.mode & mode::ALL,
        uid: entry.uid,
        gid: entry.gid,
        mtime: entry.mtime,
        atime: further.map_or(entry.mtime, |times| times.atime),
        ctime: further.map_or(entry.mtime, |times| times.ctime),
    }
}

/// Returns the attributes that an entry gets; the time of modification stands for those that are not kept.
pub(crate) fn of(options: &BuildOptions, tree: &Tree, index: EntryIndex) -> Attributes {
    let own = own(tree, index);
    if tree.is_transformed {
        let changed = &tree.changed_mtimes;
        let place = changed.binary_search_by_key(&index, |(entry, _)| *entry);
        let mtime = place.map_or(own.mtime, |place| changed[place].1);
        let has_further = !tree.further_times.is_empty();
        return Attributes {
            mtime,
            atime: if has_further { own.atime } else { mtime },
            ctime: if has_further { own.ctime } else { mtime },
            ..own
        };
    }
    let set_time = options.set_time.map(|sec| Time { sec, nsec: 0 });
    let entry_mode = tree.entry(index).mode;
    Attributes {
        permissions: mode::apply(&options.chmod, entry_mode) & mode::ALL,
        uid: options.set_owner.unwrap_or(own.uid),
        gid: options.set_group.unwrap_or(own.gid),
        mtime: set_time.unwrap_or(own.mtime),
        atime: set_time.unwrap_or(own.atime),
        ctime: set_time.unwrap_or(own.ctime),
    }
}
