//! The system calls that seccomp denies to a command.

use std::collections::BTreeMap;
use std::error::Error;
use std::process;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::Others;

/// Denies system calls that no command needs. Each fails as not permitted. All later processes inherit this.
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

/// Lists the denied calls with the denied arguments. Without arguments, all uses are denied.
fn denied_calls(others: Others) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Box<dyn Error>> {
    let mut rules = BTreeMap::from(ALWAYS_DENIED.map(|call| (call, Vec::new())));
    #[cfg(target_arch = "x86_64")]
    rules.extend(ALSO_DENIED.map(|call| (call, Vec::new())));

    let sockets = unless_local_stream()?;
    rules.insert(libc::SYS_socket, sockets.clone());
    rules.insert(libc::SYS_socketpair, sockets);
    let namespaces = NAMESPACES.iter().map(|flag| if_masked(0, *flag, *flag));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);

    // Outliving the launcher, and hiding open files from the watch.
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

/// Matches every socket except a local stream. A local stream can listen, because some libraries want to. The
/// stream reaches no service, because no command can connect. All other types can send to an address, and a
/// name in the file system leads to services of this machine in any network namespace. `SOCK_RAW` is
/// included, because `unix_create` of net/unix/af_unix.c turns it into a datagram socket.
fn unless_local_stream() -> Result<Vec<SeccompRule>, BackendError> {
    let others = (0..=SOCKET_TYPE).filter(|kind| *kind != libc::SOCK_STREAM);
    let others = others.map(|kind| if_masked(1, SOCKET_TYPE, kind));
    std::iter::once(if_not(0, libc::AF_UNIX)).chain(others).collect()
}

/// Denies the same calls with their numbers in the x32 ABI, which the filter does not distinguish by itself.
/// In that ABI, a few calls have other numbers.
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

/// Matches an argument that is an address.
fn if_address(argument: u8) -> Result<SeccompRule, BackendError> {
    let (length, op) = (SeccompCmpArgLen::Qword, SeccompCmpOp::Ne);
    SeccompRule::new(vec![SeccompCondition::new(argument, length, op, 0)?])
}

fn condition(argument: u8, op: SeccompCmpOp, value: i32) -> Result<SeccompRule, BackendError> {
    let (length, value) = (SeccompCmpArgLen::Dword, u64::from(value.cast_unsigned()));
    SeccompRule::new(vec![SeccompCondition::new(argument, length, op, value)?])
}

/// The bits of a socket's type without its flags.
const SOCKET_TYPE: i32 = 0xF;
/// `PRIO_PROCESS` of sys/resource.h. The type of this constant differs between platforms.
const PRIO_PROCESS: i32 = 0;
/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
const IOPRIO_PROCESS: i32 = 1;
/// The bit in a call's number that marks the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// The x32-only numbers of denied calls: ptrace, rt_sigqueueinfo, kexec_load, move_pages, rt_tgsigqueueinfo,
/// process_vm_readv, process_vm_writev.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [i64; 7] = [521, 524, 528, 533, 536, 539, 540];

/// The flags with which clone would create a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The calls with a process as their first argument. 0 means the caller.
const OF_ANY_PROCESS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The calls that send a signal to the process in their first argument.
const SIGNALS: [i64; 5] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// Calls that leave the process group, access other processes, create memory that outlives its process,
/// access files by name that Landlock does not protect, observe other files, reach the kernel itself, or
/// bypass this filter.
const ALWAYS_DENIED: [i64; 76] = [
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
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    GETXATTRAT,
    LISTXATTRAT,
    REMOVEXATTRAT,
    FILE_GETATTR,
    FILE_SETATTR,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    STATMOUNT,
    LISTMOUNT,
    libc::SYS_syslog,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
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

/// Newer calls, which have the same number on all architectures.
const FCHMODAT2: i64 = 452;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const SETXATTRAT: i64 = 463;
const GETXATTRAT: i64 = 464;
const LISTXATTRAT: i64 = 465;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_GETATTR: i64 = 468;
const FILE_SETATTR: i64 = 469;

/// The older forms of such calls.
#[cfg(target_arch = "x86_64")]
const ALSO_DENIED: [i64; 7] = [
    libc::SYS_inotify_init,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
