//! The sandbox's protections ("walls") that a machine supports.

use std::fmt;

/// The protections ("walls") that the launcher can use on this machine.
/// [`Sandbox::walls`](crate::Sandbox::walls) returns them, for example for the log at startup.
///
/// ```no_run
/// # fn main() -> filestore_sandbox::Result<()> {
/// let sandbox = filestore_sandbox::Sandbox::new("/proc/self/exe");
/// let walls = sandbox.walls()?;
/// println!("{walls}"); // namespaces: yes, Landlock: yes, seccomp: yes, limits: yes
/// assert!(walls.are_enough(), "commands do not run here");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walls {
    /// User, PID, network, IPC and UTS namespaces. The sandbox works without them.
    pub namespaces: bool,
    /// Landlock, which denies access to files and the network.
    pub landlock: Landlock,
    /// The filter of system calls.
    pub seccomp: bool,
}

/// How much of Landlock a kernel supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Landlock {
    /// Everything that this crate uses (Linux 6.12).
    Whole,
    /// The denial of files, and possibly more (Linux 5.13).
    Partly,
    /// No Landlock.
    Missing,
}

impl Walls {
    /// Returns true if commands run here: with Landlock and seccomp.
    pub const fn are_enough(&self) -> bool {
        !matches!(self.landlock, Landlock::Missing) && self.seccomp
    }

    /// Parses the line that `Display` writes.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        Some(Self {
            namespaces: yes_or_no(value_of("namespaces", line)?)?,
            landlock: match value_of("Landlock", line)? {
                "yes" => Landlock::Whole,
                "partly" => Landlock::Partly,
                "no" => Landlock::Missing,
                _ => return None,
            },
            seccomp: yes_or_no(value_of("seccomp", line)?)?,
        })
    }
}

fn value_of<'a>(wall: &str, line: &'a str) -> Option<&'a str> {
    line.split(", ").find_map(|part| part.strip_prefix(wall)?.strip_prefix(": "))
}

fn yes_or_no(value: &str) -> Option<bool> {
    match value {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |holds| if holds { "yes" } else { "no" };
        let landlock = match self.landlock {
            Landlock::Whole => "yes",
            Landlock::Partly => "partly",
            Landlock::Missing => "no",
        };
        let (namespaces, seccomp) = (word(self.namespaces), word(self.seccomp));
        write!(
            f,
            "namespaces: {namespaces}, Landlock: {landlock}, seccomp: {seccomp}, limits: yes"
        )?;
        if !self.are_enough() {
            f.write_str(" (not enough: commands do not run)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_of_the_walls_is_read_again() {
        for landlock in [Landlock::Whole, Landlock::Partly, Landlock::Missing] {
            for (namespaces, seccomp) in [(true, true), (false, true), (true, false)] {
                let walls = Walls { namespaces, landlock, seccomp };
                assert_eq!(Walls::parse(&walls.to_string()), Some(walls));
                let has_both = seccomp && landlock != Landlock::Missing;
                assert_eq!(walls.are_enough(), has_both);
                assert_eq!(walls.to_string().contains("not enough"), !has_both);
            }
        }
        for other in ["", "unknown option: sandbox-exec", "namespaces: maybe"] {
            assert_eq!(Walls::parse(other), None, "{other}");
        }
    }
}
