//! What the machine, and the limits that this process runs under, allow.
//!
//! What is free at this moment is not looked at: it would make images depend on what else the machine is doing.

use rustix::process::{Resource, getrlimit};

use super::cgroup;

/// Assumed where the system does not tell, and the least that is assumed.
const RAM_BYTES_MIN: u64 = 256 << 20;

/// What the system says.
#[derive(Clone, Copy, Debug)]
struct Machine {
    ram_bytes: u64,
    /// The lowest limit of the control groups that this process is in.
    cgroup_bytes: Option<u64>,
    /// The limit on allocated memory.
    data_bytes: Option<u64>,
    /// The limit on addresses, of which stacks and allocators reserve more than they use.
    address_bytes: Option<u64>,
}

/// Returns the limit for users who give none: half of the machine, three quarters of what is ours alone.
pub(crate) fn automatic_limit() -> u64 {
    Machine {
        ram_bytes: ram_bytes(),
        cgroup_bytes: cgroup::memory_limit(),
        data_bytes: getrlimit(Resource::Data).current,
        address_bytes: getrlimit(Resource::As).current,
    }
    .share()
}

impl Machine {
    fn share(self) -> u64 {
        let of = |bytes: Option<u64>, quarters: u64| bytes.map(|bytes| bytes / 4 * quarters);
        let shares = [
            of(Some(self.ram_bytes), 2),
            of(self.cgroup_bytes, 3),
            of(self.data_bytes, 3),
            of(self.address_bytes, 2),
        ];
        shares.into_iter().flatten().min().unwrap_or(self.ram_bytes)
    }
}

fn ram_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(
        clippy::useless_conversion,
        reason = "the field has the width of the machine's words"
    )]
    let total = u64::try_from(info.totalram).unwrap_or(u64::MAX);
    total
        .saturating_mul(u64::from(info.mem_unit))
        .max(RAM_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_share_counts() {
        let free = Machine {
            ram_bytes: 64 << 30,
            cgroup_bytes: None,
            data_bytes: None,
            address_bytes: None,
        };
        assert_eq!(free.share(), 32 << 30);
        let contained = Machine {
            cgroup_bytes: Some(1 << 30),
            ..free
        };
        assert_eq!(contained.share(), 768 << 20);
        let limited = Machine {
            address_bytes: Some(1 << 30),
            ..contained
        };
        assert_eq!(limited.share(), 512 << 20);
        assert!(automatic_limit() > 0);
    }
}
