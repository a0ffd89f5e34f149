//! Refuses to start a server without keys that unknown callers could reach.

use http::Uri;

use super::StartError;
use crate::admission::cors::Origins;
use crate::config::Config;
use crate::http::host::is_loopback;

/// Refuses a configuration with which others could reach a server without keys. A public URL counts as the
/// server's own address, because its proxy serves other users. So does a permission for scripts of every
/// page, because a browser on this machine can reach a loopback address.
pub(super) fn check(config: &Config) -> Result<(), StartError> {
    match refusal(config) {
        Some(refused) if !config.insecure_no_auth => Err(refused),
        Some(_) => {
            tracing::warn!(listen = %config.listen, public_url = config.public_url, "no authentication: anyone who can reach this server can read and delete all files");
            Ok(())
        }
        None => {
            warn_of_pages(config);
            Ok(())
        }
    }
}

/// Returns the reason why a server without keys would be reached by others; `None` if it would not.
pub(super) fn refusal(config: &Config) -> Option<StartError> {
    if config.cors.origins == Origins::Any {
        Some(StartError::OpenToPages { data_dir: config.data_dir.clone() })
    } else if config.listen.ip().to_canonical().is_loopback() {
        let public = config.public_url.as_ref();
        let uri: Option<Uri> = public.and_then(|url| url.parse().ok());
        let is_others = uri.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback(host));
        public.filter(|_| is_others).map(|url| StartError::Published {
            url: url.clone(),
            data_dir: config.data_dir.clone(),
        })
    } else {
        Some(StartError::Exposed { address: config.listen, data_dir: config.data_dir.clone() })
    }
}

/// Warns about other pages that can use a server without keys. The operator has listed each of them.
fn warn_of_pages(config: &Config) {
    for origin in config.cors.elsewhere() {
        tracing::warn!(%origin, "no authentication: pages of this origin can read and delete all files in browsers of this machine");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_keys_that_others_reach_is_refused() {
        let start = |listen: &str, url: Option<&str>| {
            let mut config = Config::new(listen.parse().unwrap(), "/x");
            config.public_url = url.map(str::to_owned);
            let refused = check(&config).err();
            config.insecure_no_auth = true;
            check(&config).unwrap();
            refused
        };

        assert!(start("127.0.0.1:1", None).is_none());
        assert!(start("[::1]:1", Some("http://localhost:8080/a")).is_none());
        assert!(start("127.0.0.1:1", Some("http://[::1]:8080")).is_none());
        assert!(matches!(start("0.0.0.0:1", None), Some(StartError::Exposed { .. })));
        let mut config = Config::new("127.0.0.1:1".parse().unwrap(), "/x");
        config.cors.origins = Origins::Any;
        let refused = check(&config).unwrap_err();
        assert!(matches!(refused, StartError::OpenToPages { .. }), "{refused}");
        config.insecure_no_auth = true;
        check(&config).unwrap();

        let published = start("127.0.0.1:1", Some("https://files.example.org")).unwrap();
        assert!(published.to_string().contains("https://files.example.org"), "{published}");
    }
}
