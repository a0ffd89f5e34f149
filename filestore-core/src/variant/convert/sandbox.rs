//! What the kernel has to take from a process: namespaces, Landlock, seccomp. For the launcher alone,
//! which has one thread.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use nix::sched::{CloneFlags, unshare};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
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

/// The processes of others, as the converter meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// A PID namespace hides them, or Landlock keeps signals from them.
    OutOfReach,
    /// Signals reach those of the same user: the server.
    InReach,
}

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

/// Takes all files but the system's and those in `work`; those in `readable` can be read as well. With
/// `Others::InReach`, leaves signals as they are.
pub(super) fn restrict_files(work: &Path, readable: &[PathBuf], others: Others) -> Held {
    match try_restrict_files(work, readable, others).map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Held::Whole,
        Ok(RulesetStatus::PartiallyEnforced) => Held::Partly,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Held::No,
    }
}

fn try_restrict_files(
    work: &Path,
    readable: &[PathBuf],
    others: Others,
) -> Result<RestrictionStatus, RulesetError> {
    let read = AccessFs::from_read(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    // Root without namespaces could make the disk's device there.
    let own = AccessFs::from_all(LANDLOCK) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let scopes = match others {
        Others::OutOfReach => Scope::from_all(LANDLOCK),
        Others::InReach => Scope::AbstractUnixSocket.into(),
    };

    Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(scopes)?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules([work], own))?
        .restrict_self()
}

/// Takes system calls that no converter needs: each fails as if it were not permitted. Everything that
/// is started later inherits that.
pub(super) fn restrict_calls(others: Others) -> Result<(), Box<dyn Error>> {
    let denied = libc::EPERM.cast_unsigned();
    let rules = denied_calls(others)?;
    let arch = std::env::consts::ARCH.try_into()?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(denied), arch)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;

    // Flags of clone3 lie in memory, where no filter sees them: programs then use clone.
    let missing = libc::ENOSYS.cast_unsigned();
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    #[cfg(target_arch = "x86_64")]
    let clone3 = also_as_x32(clone3);
    let filter =
        SeccompFilter::new(clone3, SeccompAction::Allow, SeccompAction::Errno(missing), arch)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;
    Ok(())
}

/// Lists the calls that fail, with the arguments for which they do; all, if none are given.
fn denied_calls(others: Others) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Box<dyn Error>> {
    let mut rules = BTreeMap::from(ALWAYS_DENIED.map(|call| (call, Vec::new())));
    #[cfg(target_arch = "x86_64")]
    rules.extend(ALSO_DENIED.map(|call| (call, Vec::new())));

    // A local socket may listen, for libraries that want one. None connects or sends to an address: a name
    // in the file system leads to the services of this machine, in any network namespace.
    let datagrams = if_masked(1, SOCKET_TYPE, libc::SOCK_DGRAM)?;
    rules.insert(libc::SYS_socket, vec![if_not(0, libc::AF_UNIX)?, datagrams.clone()]);
    rules.insert(libc::SYS_socketpair, vec![if_not(0, libc::AF_UNIX)?, datagrams]);
    let namespaces = NAMESPACES.iter().map(|flag| if_masked(0, *flag, *flag));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);

    // Outliving the launcher, and hiding open files from the server.
    let of_process = [libc::PR_SET_PDEATHSIG, libc::PR_SET_DUMPABLE];
    let of_process = of_process.map(|option| if_is(0, option)).into_iter();
    rules.insert(libc::SYS_prctl, of_process.collect::<Result<_, _>>()?);
    // The times of an open file are its writer's to set; those of a name may be another's.
    rules.insert(libc::SYS_utimensat, vec![if_address(1)?]);

    // What is said of another process, or of all of the same user.
    for call in OF_ANY_PROCESS {
        rules.insert(call, vec![if_not(0, 0)?]);
    }
    rules.insert(libc::SYS_setpriority, vec![if_not(0, PRIO_PROCESS)?, if_not(1, 0)?]);
    rules.insert(libc::SYS_ioprio_set, vec![if_not(0, IOPRIO_PROCESS)?, if_not(1, 0)?]);
    if others == Others::InReach {
        let own = process::id().cast_signed();
        for call in SIGNALS {
            rules.insert(call, vec![if_not(0, own)?]);
        }
    }

    #[cfg(target_arch = "x86_64")]
    let rules = also_as_x32(rules);
    Ok(rules)
}

/// Denies the same calls under their numbers of the x32 ABI, which the filter does not tell apart by
/// itself. Where the kernel has that ABI, a few calls have another number there.
#[cfg(target_arch = "x86_64")]
fn also_as_x32(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    let again: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    rules.extend(again);
    rules.extend(X32_NUMBERS.map(|call| (call | X32, Vec::new())));
    rules
}

fn if_is(argument: u8, value: i32) -> Result<SeccompRule, BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn if_not(argument: u8, value: i32) -> Result<SeccompRule, BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn if_masked(argument: u8, mask: i32, value: i32) -> Result<SeccompRule, BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(u64::from(mask.cast_unsigned())), value)
}

/// Holds for an argument that is an address.
fn if_address(argument: u8) -> Result<SeccompRule, BackendError> {
    let (length, op) = (SeccompCmpArgLen::Qword, SeccompCmpOp::Ne);
    SeccompRule::new(vec![SeccompCondition::new(argument, length, op, 0)?])
}

fn condition(argument: u8, op: SeccompCmpOp, value: i32) -> Result<SeccompRule, BackendError> {
    let (length, value) = (SeccompCmpArgLen::Dword, u64::from(value.cast_unsigned()));
    SeccompRule::new(vec![SeccompCondition::new(argument, length, op, value)?])
}

/// The part of a socket's type that is no flag.
const SOCKET_TYPE: i32 = 0xF;
/// `PRIO_PROCESS` of sys/resource.h, whose type is not the same everywhere.
const PRIO_PROCESS: i32 = 0;
/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
const IOPRIO_PROCESS: i32 = 1;
/// The bit of a call's number that makes it one of the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// The numbers that only x32 has, of calls that are denied: ptrace, rt_sigqueueinfo, kexec_load, move_pages,
/// rt_tgsigqueueinfo, process_vm_readv, process_vm_writev.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [i64; 7] = [521, 524, 528, 533, 536, 539, 540];

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

/// The calls that begin with a process, where 0 is the caller.
const OF_ANY_PROCESS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The calls that send a signal to the process that they begin with.
const SIGNALS: [i64; 5] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// Leaving the group, other processes, memory that outlives its process or is no part of it, what Landlock
/// leaves open of files by their names, the kernel itself, and ways around this filter.
const ALWAYS_DENIED: [i64; 60] = [
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_connect,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
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
    libc::SYS_mount_setattr,
];

/// Newer calls, which have one number on all architectures.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;

/// The older forms of such calls.
#[cfg(target_arch = "x86_64")]
const ALSO_DENIED: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
