//! A cached variant against nginx serving the same bytes, with wrk, in turns.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::server::{Connection, Outcome, Server, work_dir};

const ROUNDS: usize = 5;

pub(crate) fn run() -> Outcome {
    let server = Server::start("")?;
    let photo = photo()?;
    let reply = Connection::open(&server.address)?.upload(photo.len() as u64, |at, out| {
        let at = usize::try_from(at).expect("a photo fits in memory");
        out.copy_from_slice(&photo[at..at + out.len()]);
    })?;
    let variant_url = format!("http://{}{}/400/400", server.address, reply.location);
    let bytes = curl(&variant_url)?;

    let web = work_dir()?;
    fs::write(web.path().join("variant.webp"), &bytes)?;
    let (nginx, address) = Nginx::start(web.path())?;
    let nginx_url = format!("http://{address}/variant.webp");

    println!("variant of {} bytes", bytes.len());
    let mut ratios = Vec::new();
    for round in 0..=ROUNDS {
        let (theirs, ours) = (wrk(&nginx_url)?, wrk(&variant_url)?);
        if round > 0 {
            println!(
                "nginx {theirs:>9.0} req/s   filestore {ours:>9.0} req/s   ratio {:.2}",
                ours / theirs
            );
            ratios.push(ours / theirs);
        }
    }

    drop(nginx);
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2} (at least 0.6 is what we are after)", ratios[ratios.len() / 2]);
    Ok(())
}

/// A picture with enough detail that its 400 px variant has about the size of a real one.
fn photo() -> Outcome<Vec<u8>> {
    let picture = image::RgbImage::from_fn(1600, 1200, |x, y| {
        let wave = |k: u32| {
            u8::try_from((x * k / 7 + y * (k + 3) / 11 + (x * y / 97) % 31) % 256).unwrap_or(0)
        };
        image::Rgb([wave(1), wave(2), wave(3)])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Jpeg)?;
    Ok(bytes.into_inner())
}

fn curl(url: &str) -> Outcome<Vec<u8>> {
    let out = Command::new("curl").args(["--silent", "--fail", url]).output()?;
    if out.status.success() { Ok(out.stdout) } else { Err(format!("curl {url} failed").into()) }
}

/// Requests per second over four seconds with 32 connections.
fn wrk(url: &str) -> Outcome<f64> {
    let out = Command::new("wrk").args(["-t1", "-c32", "-d4s", url]).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    if text.contains("Non-2xx") {
        return Err(format!("replies other than 2xx from {url}").into());
    }
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    Ok(rate.ok_or_else(|| format!("wrk printed no rate: {text}"))?.trim().parse()?)
}

struct Nginx(Child);

impl Nginx {
    fn start(root: &Path) -> Outcome<(Self, String)> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (dir, conf) = (root.display(), root.join("nginx.conf"));
        fs::write(
            &conf,
            format!(
                "daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes auto;\n\
                 events {{ worker_connections 1024; }}\n\
                 http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;\n\
                 open_file_cache max=100; types {{ image/webp webp; }} client_body_temp_path {dir}/b;\n\
                 proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;\n\
                 server {{ listen 127.0.0.1:{port}; root {dir}; }} }}\n"
            ),
        )?;

        // The workers of an nginx started as root run as another user, who must reach the files.
        Command::new("chmod").arg("-R").arg("a+rX").arg(root).status()?;
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&conf)
            .arg("-p")
            .arg(root)
            .stderr(Stdio::null())
            .spawn()?;

        let (server, address) = (Self(child), format!("127.0.0.1:{port}"));
        while std::net::TcpStream::connect(&address).is_err() {
            std::thread::yield_now();
        }

        Ok((server, address))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-QUIT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}
