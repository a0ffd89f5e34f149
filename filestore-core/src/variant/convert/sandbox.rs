//! What the kernel has to take from a process: namespaces, Landlock, seccomp. For the launcher alone,
//! which has one thread.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use nix::sched::{CloneFlags, unshare};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The newest Landlock that is known; of an older kernel's as much as it has.
const LANDLOCK: ABI = ABI::V6;

/// The directories and files that converters read: programs, libraries, fonts, colour profiles.
const READABLE: [&str; 16] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/var/cache/fontconfig",
];

/// Devices that programs expect.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// How far Landlock holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Whole,
    Partly,
    No,
}

impl Held {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Whole => "yes",
            Self::Partly => "partly",
            Self::No => "no",
        }
    }
}

/// Enters namespaces of its own; the next process is the first in the PID namespace. Returns false
/// where the kernel or its administrator forbids that.
pub(super) fn enter_namespaces() -> bool {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if unshare(all).is_err() {
        return false;
    }

    // Without a map the process is nobody within, and still itself to the file system.
    let _ = fs::write("/proc/self/setgroups", "deny");
    let _ = fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()));
    let _ = fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()));
    true
}

/// Takes all files but the system's and those in `work`; what `programs` holds can be read as well.
pub(super) fn restrict_files(work: &Path, programs: Option<&Path>) -> Held {
    match try_restrict_files(work, programs).map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Held::Whole,
        Ok(RulesetStatus::PartiallyEnforced) => Held::Partly,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Held::No,
    }
}

fn try_restrict_files(
    work: &Path,
    programs: Option<&Path>,
) -> Result<RestrictionStatus, RulesetError> {
    let read = AccessFs::from_read(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;

    Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(programs, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules([work], AccessFs::from_all(LANDLOCK)))?
        .restrict_self()
}

/// Takes system calls that no converter needs: each fails as if it were not permitted. Everything that
/// is started later inherits that.
pub(super) fn restrict_calls() -> Result<(), Box<dyn Error>> {
    let denied = libc::EPERM.cast_unsigned();
    let rules = denied_calls()?;
    let arch = std::env::consts::ARCH.try_into()?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(denied), arch)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;

    // Flags of clone3 lie in memory, where no filter sees them: programs then use clone.
    let missing = libc::ENOSYS.cast_unsigned();
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let filter =
        SeccompFilter::new(clone3, SeccompAction::Allow, SeccompAction::Errno(missing), arch)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;
    Ok(())
}

/// Lists the calls that fail, with the arguments for which they do; all, if none are given.
fn denied_calls() -> Result<BTreeMap<i64, Vec<SeccompRule>>, Box<dyn Error>> {
    let mut rules = BTreeMap::from(ALWAYS_DENIED.map(|call| (call, Vec::new())));
    let not = |argument: u8, value: i32| {
        let (op, value) = (SeccompCmpOp::Ne, u64::from(value.cast_unsigned()));
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?;
        SeccompRule::new(vec![condition])
    };

    // Local sockets lead nowhere in a network namespace, and many libraries open one.
    rules.insert(libc::SYS_socket, vec![not(0, libc::AF_UNIX)?]);
    let namespaces = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        let op = SeccompCmpOp::MaskedEq(flag);
        SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, op, flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

/// The flags with which clone would make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Leaving the group, other processes, the kernel itself, and ways around this filter.
const ALWAYS_DENIED: [i64; 38] = [
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];
