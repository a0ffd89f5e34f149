//! Many clients that do little: what they take, and what others notice of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, interval_at, timeout};

use super::server::{Connection, Outcome, Server, noise};

const TRICKLERS: u32 = 1000;
/// 1.1 KiB/s, a little more than the least rate.
const TRICKLE_BYTES: usize = 1127;
/// The pieces, one a second, after which the grace of the least rate is over.
const PIECES_IN_GRACE: u32 = 36;

const IDLE: usize = 10_000;
const IDLE_ADDRESSES: usize = 10;
const IDLE_KIB: u64 = 16;
const ACTIVE: usize = 200;

const SLOW_OF_A_KIND: usize = 250;
/// The time in which health has to answer beside slow clients.
const HEALTH: Duration = Duration::from_millis(50);

/// The descriptors of a server that is to run out of them.
const DESCRIPTORS: u32 = 256;
/// The time in which it has to answer once they are free.
const RECOVERY: Duration = Duration::from_secs(2);

const GET: &[u8] = b"GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n";

pub(crate) fn run() -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        // Each part is measured, whatever the others give.
        let outcomes =
            [tricklers().await, idle().await, slow_kinds().await, descriptors_used_up().await];
        outcomes.into_iter().collect()
    })
}

/// Connects from an address of the loopback network.
async fn connect(server: &Server, source: &str) -> Outcome<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{source}:0").parse()?)?;
    Ok(socket.connect(server.address.parse()?).await?)
}

/// Ten thousand idle connections: the memory that each takes, and what active ones notice.
async fn idle() -> Outcome {
    let server = Server::start("[http]\nkeep_alive_idle_secs = 3600\n")?;
    let mut active = Vec::new();
    for _ in 0..ACTIVE {
        active.push(connect(&server, "127.0.1.1").await?);
    }
    let alone = p99(&mut active).await?;

    let (before, _) = server.memory_kib()?;
    let mut idle = Vec::with_capacity(IDLE);
    for index in 0..IDLE {
        let source = format!("127.0.0.{}", 1 + index % IDLE_ADDRESSES);
        let mut stream = connect(&server, &source).await?;
        ask(&mut stream).await?;
        idle.push(stream);
    }
    let each = server.memory_kib()?.0.saturating_sub(before) * 10 / IDLE as u64;
    let beside = p99(&mut active).await?;

    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!(
        "{IDLE} idle connections: {}.{} KiB each; p99 of {ACTIVE} active ones {alone:.1?} alone, {beside:.1?} beside: {ratio:.2}",
        each / 10,
        each % 10
    );
    if each > IDLE_KIB * 10 || ratio > 2.0 {
        return Err("idle connections take too much".into());
    }
    Ok(())
}

/// Asks for the health and reads the reply.
async fn ask(stream: &mut TcpStream) -> Outcome {
    let mut reply = [0; 1024];
    stream.write_all(GET).await?;
    let read = stream.read(&mut reply).await?;
    if reply[..read].starts_with(b"HTTP/1.1 200") {
        Ok(())
    } else {
        Err(format!("the server answers {:?}", String::from_utf8_lossy(&reply[..read])).into())
    }
}

/// Lets each connection ask again and again, and returns the 99th percentile of all answers.
async fn p99(active: &mut [TcpStream]) -> Outcome<Duration> {
    let mut times = Vec::new();
    for _ in 0..20 {
        for stream in &mut *active {
            let began = Instant::now();
            ask(stream).await?;
            times.push(began.elapsed());
        }
    }
    times.sort();
    Ok(times[times.len() * 99 / 100])
}

/// A thousand uploads of one address that trickle, and uploads of another one beside them.
async fn tricklers() -> Outcome {
    let server = Server::start("")?;
    let alone = uploads(&server).await?;

    let past_grace = Arc::new(Semaphore::new(0));
    let mut tricklers = JoinSet::new();
    for index in 0..TRICKLERS {
        let stream = connect(&server, "127.0.0.1").await?;
        tricklers.spawn(trickle(stream, index, Arc::clone(&past_grace)));
    }
    tokio::select! {
        all = past_grace.acquire_many(TRICKLERS) => drop(all?),
        _ = tricklers.join_next() => return Err("a client that trickles was cut".into()),
    }

    let beside = uploads(&server).await?;
    let ended = std::iter::from_fn(|| tricklers.try_join_next()).count();
    tricklers.abort_all();

    let mut failed = ended > 0;
    for ((name, alone), (_, beside)) in alone.into_iter().zip(beside) {
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        println!(
            "{TRICKLERS} uploads at 1.1 KiB/s ({ended} cut): an upload of {name} takes {alone:.1?} alone, {beside:.1?} beside: {ratio:.2}"
        );
        failed |= ratio > 2.0;
    }
    if failed { Err("clients that trickle are noticed".into()) } else { Ok(()) }
}

/// Begins an upload of 1 GiB, and sends a little of it in each second. Adds a permit once the grace of the
/// least rate is over.
async fn trickle(mut stream: TcpStream, index: u32, past_grace: Arc<Semaphore>) {
    let head = "--b\r\nContent-Disposition: form-data; name=organization_id\r\n\r\nslow\r\n\
                --b\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n";
    let request = format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; \
         boundary=b\r\nContent-Length: {}\r\n\r\n{head}",
        1 << 30
    );
    let offset = Duration::from_micros(1_000_000 * u64::from(index) / u64::from(TRICKLERS));
    let mut seconds = interval_at(tokio::time::Instant::now() + offset, Duration::from_secs(1));
    seconds.tick().await;
    if stream.write_all(request.as_bytes()).await.is_err() {
        return;
    }

    for piece in 0_u32.. {
        seconds.tick().await;
        if piece == PIECES_IN_GRACE {
            past_grace.add_permits(1);
        }
        if stream.write_all(&[b'x'; TRICKLE_BYTES]).await.is_err() {
            return;
        }
    }
}

/// Measures uploads of two sizes from an address of its own; medians.
async fn uploads(server: &Server) -> Outcome<Vec<(&'static str, Duration)>> {
    let stream = connect(server, "127.0.0.2").await?.into_std()?;
    stream.set_nonblocking(false)?;
    let mut connection = Connection::over(stream, &server.address)?;

    let measured = tokio::task::spawn_blocking(move || -> Outcome<_> {
        let mut medians = Vec::new();
        for (name, bytes, count) in [("64 KiB", 64 << 10, 200), ("8 MiB", 8 << 20, 40)] {
            let mut times = Vec::new();
            for _ in 0..count {
                let began = Instant::now();
                let reply = connection.upload(bytes, noise)?;
                if reply.status != 201 {
                    return Err(format!("an upload is answered {}", reply.status).into());
                }
                times.push(began.elapsed());
            }
            times.sort();
            medians.push((name, times[times.len() / 2]));
        }
        Ok(medians)
    });
    measured.await?
}

/// The ways to be slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Silent,
    Header,
    Body,
    Reader,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Silent, Self::Header, Self::Body, Self::Reader];

    /// Returns what the client sends at once. `large` is the path of a large file.
    fn start(self, large: &str) -> String {
        match self {
            Self::Silent => String::new(),
            Self::Header => "GET / HTTP/1.1\r\nX: ".into(),
            Self::Body => "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\n\
                           Content-Type: multipart/form-data; boundary=b\r\n\
                           Content-Length: 1000000\r\n\r\n"
                .into(),
            Self::Reader => format!("GET {large} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        }
    }

    /// Returns the time after which the server ends such a connection.
    fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Silent | Self::Body => 30,
            Self::Header => 10,
            Self::Reader => 60,
        })
    }
}

/// Clients that are slow in every way: the server ends each in time, and answers others meanwhile. Ends are
/// seen in the server's descriptors, because a client that does not read does not see them.
async fn slow_kinds() -> Outcome {
    // A file that stays open would be taken for a connection that does.
    let server = Server::start("[limits]\nopen_files = 0\n")?;
    let mut connection = Connection::open(&server.address)?;
    let large = connection.upload(64 << 20, noise)?.location;

    let mut failed = false;
    for kind in Kind::ALL {
        let before = server.descriptors()?;
        let mut clients = JoinSet::new();
        for _ in 0..SLOW_OF_A_KIND {
            let stream = connect(&server, "127.0.0.3").await?;
            clients.spawn(slow(stream, kind, kind.start(&large)));
        }

        let began = Instant::now();
        let mut looks = interval(Duration::from_millis(100));
        let (mut worst, mut open) = (Duration::ZERO, SLOW_OF_A_KIND);
        while open > 0 && began.elapsed() < kind.limit() * 2 {
            worst = worst.max(health(&server).await?);
            looks.tick().await;
            open = server.descriptors()?.saturating_sub(before);
        }

        let took = began.elapsed();
        println!(
            "{SLOW_OF_A_KIND} slow clients ({kind:?}): {open} left after {took:.1?}, health answers within {worst:.1?}"
        );
        failed |= open > 0 || worst > HEALTH;
    }
    if failed { Err("slow clients are not cut, or are noticed".into()) } else { Ok(()) }
}

/// As many connections as the server may have descriptors, and more: once they are gone, it answers.
async fn descriptors_used_up() -> Outcome {
    let server = Server::start_with_descriptors("", DESCRIPTORS)?;
    let mut clients = Vec::new();
    for index in 0..2 * DESCRIPTORS {
        clients.push(connect(&server, &format!("127.0.0.{}", 5 + index % 200)).await?);
    }
    if timeout(Duration::from_secs(1), health(&server)).await.is_ok() {
        return Err("the server is not at its limit".into());
    }

    let open = server.descriptors()?;
    drop(clients);
    let took = health(&server).await?;
    println!(
        "{open} of {DESCRIPTORS} descriptors in use: health answers {took:.1?} after their end"
    );
    if took > RECOVERY { Err("the server does not recover".into()) } else { Ok(()) }
}

/// Goes on with one byte in each half second, sent or read, for as long as the server lets it.
async fn slow(mut stream: TcpStream, kind: Kind, start: String) {
    if stream.write_all(start.as_bytes()).await.is_err() {
        return;
    }

    let mut pause = tokio::time::interval(Duration::from_millis(500));
    loop {
        pause.tick().await;
        let goes_on = match kind {
            Kind::Silent => true,
            Kind::Header | Kind::Body => stream.write_all(b"x").await.is_ok(),
            Kind::Reader => matches!(stream.read(&mut [0]).await, Ok(1)),
        };
        if !goes_on {
            return;
        }
    }
}

/// Asks for the health on a connection of its own, and returns how long that takes.
async fn health(server: &Server) -> Outcome<Duration> {
    let asked = Instant::now();
    let mut stream = connect(server, "127.0.0.4").await?;
    ask(&mut stream).await?;
    Ok(asked.elapsed())
}
