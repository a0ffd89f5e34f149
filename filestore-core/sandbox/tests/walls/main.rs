//! The walls of the sandbox, tried from within. This program is the launcher of the commands that it tries, as every
//! program that uses the crate is. It therefore has a `main` of its own in place of the usual one.

#![cfg(target_os = "linux")]

mod attacks;
mod bench;
mod harness;
mod launcher;
mod runs;

use std::process::ExitCode;

use crate::harness::{Test, tests};

const TESTS: &[Test] = tests![
    attacks::no_descriptor_is_passed_on_whichever_walls_hold,
    #[cfg(target_arch = "x86_64")]
    attacks::nothing_outside_is_reached_whichever_walls_hold,
    #[cfg(target_arch = "x86_64")]
    attacks::only_local_streams_are_sockets_and_no_news_of_other_files_arrives_whichever_walls_hold,
    #[cfg(target_arch = "x86_64")]
    attacks::no_datagram_leaves_the_sandbox_by_a_raw_socket_whichever_walls_hold,
    attacks::what_a_command_needs_is_left_to_it_whichever_walls_hold,
    launcher::a_command_cannot_leave_its_sandbox_with_or_without_each_of_its_walls,
    launcher::all_processes_end_with_their_program_whichever_walls_hold,
    launcher::the_launcher_ends_as_its_program_does,
    runs::a_command_turns_its_input_into_an_output_and_leaves_nothing,
    runs::a_command_that_fails_says_how_and_why,
    runs::a_command_that_takes_more_than_its_share_is_killed_with_all_its_processes,
    runs::a_killed_run_ends_with_all_its_processes,
    runs::a_launcher_that_is_no_launcher_is_found_out,
];

fn main() -> ExitCode {
    if let Some(code) = filestore_sandbox::launch(std::env::args_os()) {
        return code;
    }
    harness::run(TESTS, bench::out_of_reach())
}
