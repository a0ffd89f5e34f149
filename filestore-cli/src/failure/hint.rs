//! Advice on what to do next, by the stable code of the refusal: the same for both targets.

use filestore_client::ErrorKind;
use filestore_core::api::ErrorCode as Code;

/// Returns the advice for a refusal with this code.
pub(super) fn of(code: &Code, field: Option<&str>, allowed: &[String]) -> Option<String> {
    let advice = match code {
        Code::InvalidField | Code::MissingField => {
            return field.and_then(by_field).or_else(|| listed(allowed));
        }
        Code::NotFound if field == Some("destination") => {
            "name one of the configuration (`[[backup.destinations]]`), or a directory with a slash in it: ./NAME"
        }
        Code::NotFound => {
            "is the id right? `filestore list` shows what there is; a deleted file cannot be read"
        }
        Code::Conflict => match field {
            // A migration goes where the binding says, and there is one at a time.
            Some("to") => "`filestore binding update --provider CODE` changes where its files go",
            Some("organizationId") => "`filestore migrate status` shows how far it is",
            _ => "run the command again",
        },
        Code::AlreadyPurging => {
            "its bytes are being removed; upload the file again if you still have it"
        }

        Code::Unauthorized => "give a valid key with --key or FILESTORE_KEY",
        Code::Forbidden => "use a key with the scope and organization for it",
        Code::MisdirectedRequest => {
            "name the server by its address, or put this name into its `allowed_hosts`"
        }
        Code::PreconditionFailed => {
            "somebody else changed it: look at it with `filestore info`, then repeat with its new sha256"
        }

        Code::IdempotencyMismatch => {
            "use another --idempotency-key, or upload what was uploaded under this one"
        }
        Code::IdempotencyInProgress => {
            "wait for the other upload to end, then run the command again"
        }
        Code::DigestMismatch => {
            "compare with `sha256sum FILE`; did the file change while it was read?"
        }

        Code::BindingRequired => "bind the organization first: `filestore binding create --help`",
        Code::BindingAlreadyActive => {
            "change it with `filestore binding update`, or terminate it with --active false"
        }
        Code::NoActiveBinding => {
            "create one with `filestore binding create`; `filestore binding list` shows old ones"
        }
        Code::UnknownProvider => {
            return listed(allowed).or_else(|| Some("see `filestore provider list`".to_owned()));
        }
        Code::NotAnImage | Code::ConversionFailed | Code::CorruptImage | Code::ImageTooLarge => {
            "`filestore get` downloads the file as it was uploaded"
        }
        _ => return of_a_lack(code, field).map(str::to_owned).or_else(|| listed(allowed)),
    };

    Some(advice.to_owned())
}

/// Advises where something that the service needs is missing, full or taken.
fn of_a_lack(code: &Code, field: Option<&str>) -> Option<&'static str> {
    Some(match code {
        Code::ProviderInactive => "choose one of `filestore provider list`",
        Code::ProviderUnavailable if field == Some("config") => {
            "give the server's configuration with --config FILE"
        }
        Code::ProviderUnavailable => "try again later, or check the provider's configuration",

        Code::TooLarge | Code::TooManyItems => {
            "split it, or raise the limit in the server's configuration"
        }
        Code::QuotaExceeded => {
            "delete files of the organization and run `filestore purge run`, or raise its quota"
        }

        Code::Busy | Code::BodyTimeout => "try again later",
        Code::StorageFull if field == Some("destination") => {
            "make room there, or name another destination, and run the command again"
        }
        Code::StorageFull => "deleting still works: `filestore delete`, then `filestore purge run`",
        Code::DatabaseFull => "make room on the disk of the database server",
        Code::OutcomeUnknown => "look whether the change was made before you repeat it",
        Code::Locked => "wait for the other command to end",
        _ => return None,
    })
}

/// Returns the advice where no server answered.
pub(super) fn without_reply(kind: ErrorKind) -> Option<String> {
    let advice = match kind {
        ErrorKind::Connect => {
            "is a server running there? start one with `filestore-server`, name another with --server, \
             or work on a data directory with --data-dir"
        }
        ErrorKind::Timeout | ErrorKind::Interrupted | ErrorKind::Busy => "run the command again",
        ErrorKind::Protocol => "is --server the URL of a filestore server, without /api/v1?",
        _ => return None,
    };

    Some(advice.to_owned())
}

fn by_field(field: &str) -> Option<String> {
    // Fields of a batch item come as `items[3].original_name`.
    let advice = match field.rsplit('.').next().unwrap_or(field) {
        "organization_id" => {
            "--org takes 1 to 64 letters, digits, _ and -, and a number without leading zeros"
        }
        "sub_system" => {
            "--sub takes 1 to 64 letters, digits, . _ and -, and begins with a letter or digit"
        }
        "original_name" | "organizationName" => {
            "--name takes at least one character and no control characters"
        }
        "expires_in_s" => "--expires-in takes whole seconds, from 1 to what the error names",
        "organizations" => "--org takes an organization's id, or '*' alone for all",
        "scopes" => "--scope takes read, write, delete or admin",
        "name" => "--name takes 1 to 255 characters and no control characters",
        "key_id" => {
            "an id has 26 upper-case letters and digits, as `filestore key list` shows them"
        }
        "overlap_s" => "--overlap takes 0 to 2592000 seconds",
        "mime_type" => "--type takes a media type such as image/jpeg",
        "sha256" => "--sha256 takes 64 hexadecimal digits, as `sha256sum FILE` prints them",
        "file_id" => "an id has 26 upper-case letters and digits, as `filestore list` shows them",
        "organizationId" => "--org takes a whole number from 1 to 9007199254740991",
        "limit" => "--limit takes 1 to 1000; --all shows everything",
        "cursor" => "a cursor belongs to the listing it came from, with the same filters",
        "Idempotency-Key" => "--idempotency-key takes 1 to 255 printable ASCII characters",
        _ => return None,
    };

    Some(advice.to_owned())
}

fn listed(allowed: &[String]) -> Option<String> {
    (!allowed.is_empty()).then(|| format!("allowed: {}", allowed.join(", ")))
}
