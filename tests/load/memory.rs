//! The growth of the server's peak memory under large and many uploads.

use super::server::{Connection, Outcome, Server, noise};

const MIB: u64 = 1 << 20;

pub(crate) fn run() -> Outcome {
    one_large()?;
    many_at_once()
}

fn one_large() -> Outcome {
    let server = Server::start("[limits]\nmax_file_size = 4294967296\n")?;
    let mut connection = Connection::open(&server.address)?;
    connection.upload(MIB, noise)?;
    let (before, _) = server.memory_kib()?;
    let reply = connection.upload(2048 * MIB, noise)?;
    expect(reply.status, 201)?;
    let reply = connection.get(&reply.location)?;
    expect(reply.status, 200)?;
    report("one upload and download of 2 GiB", before, &server, 32)
}

fn many_at_once() -> Outcome {
    let server = Server::start("")?;
    Connection::open(&server.address)?.upload(MIB, noise)?;

    let (before, _) = server.memory_kib()?;
    std::thread::scope(|scope| -> Outcome {
        let threads: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| -> Outcome {
                    expect(Connection::open(&server.address)?.upload(64 * MIB, noise)?.status, 201)
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no load thread panics")?;
        }
        Ok(())
    })?;

    report("64 uploads of 64 MiB at once", before, &server, 128)
}

fn report(what: &str, before_kib: u64, server: &Server, limit_mib: u64) -> Outcome {
    let (_, peak_kib) = server.memory_kib()?;
    let grown = peak_kib.saturating_sub(before_kib) / 1024;
    println!(
        "{what}: peak memory grew by {grown} MiB (from {} MiB; limit {limit_mib} MiB)",
        before_kib / 1024
    );
    if grown > limit_mib {
        return Err(format!("{what} grew memory by {grown} MiB, more than {limit_mib} MiB").into());
    }
    Ok(())
}

fn expect(status: u16, wanted: u16) -> Outcome {
    if status == wanted { Ok(()) } else { Err(format!("expected {wanted}, got {status}").into()) }
}
