//! nginx, with the shipped configuration.

use std::path::Path;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::garage::Node;
use crate::parts::{Backend, free_port};

const SHIPPED: &str = include_str!("../../filestore-server/deploy/compose/nginx.conf");

/// nginx in front of the servers, and between them and Garage.
pub(crate) struct Nginx {
    process: Child,
    pub(crate) url: String,
    /// The address of the objects, for the servers.
    pub(crate) objects: String,
}

impl Nginx {
    /// Starts it with the shipped file, but for the addresses.
    pub(crate) fn between(home: &Path, servers: &[Backend], nodes: &[Node]) -> Self {
        let (front, back) = (free_port(), free_port());
        let mut shipped = SHIPPED.to_owned();
        replace(&mut shipped, "listen 80;", &format!("listen 127.0.0.1:{front};"));
        replace(&mut shipped, "listen 3900;", &format!("listen 127.0.0.1:{back};"));
        for (at, server) in servers.iter().enumerate() {
            let name = format!("server{}:8080 ", at + 1);
            replace(&mut shipped, &name, &format!("{} ", server.address()));
        }
        for (at, node) in nodes.iter().enumerate() {
            let name = format!("garage{}:3900 ", at + 1);
            replace(&mut shipped, &name, &format!("{} ", node.address));
        }

        let dir = home.display();
        let text = format!(
            "daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log; events {{}}
             http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
             fastcgi_temp_path {dir}/1; uwsgi_temp_path {dir}/2; scgi_temp_path {dir}/3;
             {shipped} }}"
        );
        let file = home.join("nginx.conf");
        std::fs::write(&file, text).expect("a file");
        let process = Command::new("nginx").arg("-q").arg("-c").arg(file).spawn();
        Self {
            process: process.expect("nginx starts"),
            url: format!("http://127.0.0.1:{front}"),
            objects: format!("http://127.0.0.1:{back}"),
        }
    }
}

/// Puts `by` in the place of the one `name` that a text has.
fn replace(text: &mut String, name: &str, by: &str) {
    assert_eq!(text.matches(name).count(), 1, "{name} in the shipped file");
    *text = text.replace(name, by);
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It ends its workers, as it would not if it were killed.
        let id = Pid::from_raw(self.process.id().try_into().expect("a process"));
        let _ = kill_process(id.expect("a process"), Signal::TERM);
        let _ = self.process.wait();
    }
}
