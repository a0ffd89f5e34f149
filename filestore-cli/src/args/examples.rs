//! What `--help` says after the options: the world in prose, then examples to copy.

pub(super) const TOP: &str = "\
Output: data goes to stdout and everything else to stderr. --json gives one JSON value per
command (`list --all` gives one record per line). --quiet gives ids, keys and URLs only.

Exit status: 0 done; 1 refused or not found; 2 wrong usage, or something failed (no
connection, a full disk, a fault of the server); 3 something was found, or is left (`fsck`,
`purge receipt --verify`); 130 stopped by Ctrl-C, 143 by SIGTERM. Whichever of these two ends a
download, no part of a file is left behind.

Examples:
  filestore upload photo.jpg --org 42 --sub gallery
  filestore upload --recursive ./photos --org 42 --sub gallery
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o photo.jpg
  filestore --data-dir /var/lib/filestore list --org 42";

pub(super) const UPLOAD: &str = "\
When the command succeeds the files are stored durably: they survive a crash and a power cut.

--recursive walks a directory in order of name, hidden files included and symbolic links left
out, and stores every file under its own name. What is acknowledged goes to a journal at once,
so an upload that is interrupted is finished by running the same command again: files in the
journal are skipped as long as their size and time are the same. A file that changed since is
uploaded as a new file, also if it is what it was before an earlier change. An upload whose
answer was lost is not stored twice if it is repeated within 24 hours.

Examples:
  filestore upload photo.jpg --org 42 --sub gallery
  filestore upload draft.pdf --org 42 --sub letters --temp
  filestore upload --recursive ./photos --org 42 --sub gallery --jobs 8
  pg_dump shop | filestore upload - --name shop.sql --org 42 --sub backups";

pub(super) const BATCH: &str = "\
Either all files of a batch are stored or none is, and no reader ever sees a part of it. Use
`upload` where files may succeed one by one.

Examples:
  filestore batch front.jpg back.jpg --org 42 --sub gallery
  filestore batch invoice.pdf invoice.xml --org 42 --sub billing --idempotency-key invoice-2041";

pub(super) const GET: &str = "\
A file is written under a temporary name, checked against its SHA-256, and only then put in
place: the output is whole or absent. A file that exists is kept unless --force is given.

Examples:
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o holiday.jpg --force
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o - | tar -tz
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE --range 0-1023 -o head.bin";

pub(super) const VARIANT: &str = "\
A variant is a square WebP, cropped around the centre; nothing is ever enlarged. An image that
is small enough already comes as it was uploaded. --fit inside keeps the whole picture.

Examples:
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 200
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 1000 --fit inside -o large.webp
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 400 -o - > preview.webp";

pub(super) const SHEET: &str = "\
A contact sheet shows up to 100 images in a grid, in one request. With --map the places of the
pictures are printed instead, and why a file is not shown.

Examples:
  filestore sheet 01JD8QZ4T6X3M2V9B7K5N1R0CE 01JD8QZ4T6X3M2V9B7K5N1R0CF
  filestore list --json | jq -r .items[].file_id | xargs filestore sheet --size 400 -o page.webp
  filestore sheet 01JD8QZ4T6X3M2V9B7K5N1R0CE --map | jq .cells";

pub(super) const INFO: &str = "\
A deleted file is shown, with its purge status, until the purge has removed it.

Examples:
  filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256";

pub(super) const LIST: &str = "\
One page is shown unless --all is given. With --json a page is {\"items\": [...],
\"next_cursor\": ...}, and --all gives one record per line (NDJSON), however many there are.

Examples:
  filestore list --org 42 --sub gallery
  filestore list --status TEMP --all
  filestore list --org 42 --name-prefix invoice- --created-after 2026-11-01 --metadata customer=7
  filestore list --all --json | jq -r 'select(.file_size > 1000000) | .file_id'
  filestore list --purge-status SYSTEM_PURGE";

pub(super) const THUMBNAIL: &str = "\
A temporary file expires; a thumbnail stays, on the server's own disk.

Examples:
  filestore thumbnail 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore thumbnail \"$(filestore upload small.png --temp --org 42 --sub gallery --quiet)\"";

pub(super) const READY: &str = "\
With a file the bytes are replaced in the same step. A file that is ready already stays as it
is.

Examples:
  filestore ready 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore ready 01JD8QZ4T6X3M2V9B7K5N1R0CE final.pdf";

pub(super) const REPLACE: &str = "\
The id stays, the version goes up by one, and a reader gets the old bytes or the new ones,
never a mix. With --if-match the file is replaced only if nobody else changed it: the value is
the sha256 that `info` shows, or * for any.

Examples:
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE photo-2.jpg
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE - --name notes.txt < notes.txt
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE photo-2.jpg \\
      --if-match \"$(filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256)\"";

pub(super) const EDIT: &str = "\
Bytes, digest and version stay. A new name changes no type, and a new type no name.

Examples:
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --name invoice-7.pdf
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --type text/csv --metadata '{\"customer\": 7}'
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --metadata '{}'";

pub(super) const DELETE: &str = "\
A deleted file cannot be read from that moment on. Its bytes go with the next purge; until
then `restore` brings it back. With --if-match the file is deleted only if nobody replaced it:
the value is the sha256 that `info` shows.

Examples:
  filestore delete 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore delete 01JD8QZ4T6X3M2V9B7K5N1R0CE \\
      --if-match \"$(filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256)\"
  filestore list --org 42 --sub drafts --all --quiet | xargs filestore delete";

pub(super) const RESTORE: &str = "\
Works until the purge has claimed the file. A server purges soon after a deletion unless a
grace is configured.

Examples:
  filestore restore 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore list --purge-status SYSTEM_PURGE --all --quiet | xargs -n 1 filestore restore";

pub(super) const PROVIDER_LIST: &str = "\
LOCAL, the target's own disk, is always there.

Examples:
  filestore provider list
  filestore provider list --all
  filestore provider list --json | jq -r '.[].providerCode'";

pub(super) const PROVIDER_CHECK: &str = "\
Objects of its own are written, read and removed. What the provider cannot do is done without,
if that is possible; the exit status is 1 if it is not. The clock is told, not judged.

Examples:
  filestore provider check s3-eu
  filestore --data-dir /var/lib/filestore --config filestore.toml provider check s3-eu";

pub(super) const BINDING_CREATE: &str = "\
An organization has at most one active binding. Without one its files are stored locally.

Examples:
  filestore binding create --org 42 --name 'Acme Ltd' --provider LOCAL
  filestore binding create --org 43 --name 'Umbrella' --provider LOCAL --sync";

pub(super) const BINDING_UPDATE: &str = "\
Examples:
  filestore binding update --org 42 --provider LOCAL --sync true
  filestore binding update --org 42 --active false
  filestore binding update --org 42 --active true";

pub(super) const BINDING_LIST: &str = "\
Terminated bindings are listed too.

Examples:
  filestore binding list
  filestore binding list --org 42 --json";

pub(super) const KEY_CREATE: &str = "\
The key is printed once; the store keeps a digest. Until the first key is made a server on
loopback asks nobody for one; from then on every caller needs one, also when none is left. The
first key is made through the data directory, or through the socket in it while a server runs.
Scopes do not imply one another, but admin implies all; with --org '*' it administers the whole
service.

Examples:
  filestore --data-dir /var/lib/filestore key create --org '*' --scope admin
  filestore key create --org 42 --scope read --scope write --name 'the web shop'
  FILESTORE_KEY=$(filestore key create --org 42 --scope read --expires-in 3600)";

pub(super) const KEY_LIST: &str = "\
Examples:
  filestore key list
  filestore key list --json | jq '.[] | select(.last_used_at == null)'";

pub(super) const KEY_REVOKE: &str = "\
The key is refused at once, without a restart, and stays in the list.

Examples:
  filestore key revoke 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const KEY_ROTATE: &str = "\
Id, name and rights stay. The text before is refused at once, unless --overlap says how long
both are good.

Examples:
  filestore key rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore key rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE --overlap 86400";

pub(super) const KEY_GENERATE: &str = "\
No store is touched. Give the hash to the server (`first_key_hash_file` in its configuration, or
FILESTORE_FIRST_KEY_HASH), and the text to whoever administers it: at its first start the server
makes a key of it, with the scope admin for all organizations.

Examples:
  filestore key generate
  filestore key generate --json | jq -r .hash > first-key.hash";

pub(super) const PURGE_RUN: &str = "\
Expired temporary files, deleted files and the old bytes of replaced ones are removed, each
once its grace is over. A server does this by itself; run it to have it done now, or where no
server runs. What cannot be removed stays on the list and is tried again; the exit status is 1
then.

On a data directory without a server the lifetimes are those that its server last used, unless
--config says otherwise. If that server used providers, --config has to name them.

Examples:
  filestore purge run --dry-run
  filestore purge run
  filestore --data-dir /var/lib/filestore purge run --json";

pub(super) const PURGE_RECEIPT: &str = "\
A receipt is there once the file's bytes are gone and its record with them, and is kept for 90
days unless the store says otherwise. It names the caller who deleted the file, the SHA-256 of
the bytes and where they were found absent, and the snapshots in configured destinations that
still have them. It says so as things are now: ask again once those are pruned. The server
signs it; --json prints it as it is verified.

Without --keys or --public-key a receipt is compared with the key that it names itself: whoever
verifies it has to know that this is the store's. Only --keys tells when a key was retired.

Exit status of --verify: 0 good, and nothing of the file is left; 3 good, and something is left or
was not looked at; 1 changed, signed by another key, or after its key was retired; 2 no receipt.

Examples:
  filestore purge receipt 01M80BSYQD968W759B8Z4A5VK6
  filestore purge receipt 01M80BSYQD968W759B8Z4A5VK6 --json > receipt.json
  filestore purge receipt-keys --json > keys.json
  filestore purge receipt --verify receipt.json --keys keys.json";

pub(super) const PURGE_RECEIPT_KEYS: &str = "\
The first receipt makes the key that signs. A key that was rotated out signs nothing more and
verifies what it has signed.

Examples:
  filestore purge receipt-keys
  filestore purge receipt-keys --rotate";

pub(super) const SYNC_RUN: &str = "\
Files go to their organization's provider, several at a time; a file whose organization has no
provider elsewhere has nowhere to go and is settled. A server does this by itself within
seconds. The exit status is 1 if something is left that failed.

Examples:
  filestore sync run
  filestore --data-dir /var/lib/filestore sync run --json";

pub(super) const SYNC_ENQUEUE: &str = "\
A binding is about new files. This queues the older ones as well: those that are not at the
organization's provider yet.

Examples:
  filestore sync enqueue --org 42
  filestore sync enqueue --org 42 && filestore sync run";

pub(super) const SYNC_RETRY: &str = "\
A file is FAILED after 12 failed attempts to copy it (`sync.max_attempts` of the configuration), and
is served from where it is. Look into the provider first: `filestore provider check CODE`, and the
server's log. The count of attempts begins anew.

Examples:
  filestore sync retry
  filestore sync retry --org 42";

pub(super) const MIGRATE_PLAN: &str = "\
Temporary files and thumbnails stay on the target's own disk. The provider is the one that the
organization is bound to: bind it first, and new files go there already.

Examples:
  filestore migrate plan --org 42 --to LOCAL
  filestore migrate plan --org 42 --to LOCAL --json | jq .move_bytes";

pub(super) const MIGRATE_RUN: &str = "\
Each file is copied, verified, and only then its record points to the copy; the old bytes go
after a grace. Files are read, replaced and deleted meanwhile as ever. Ctrl-C finishes the
copies under way and says what was done; a second one does not wait. Run the command again to
go on. The exit status is 1 if files are left.

Examples:
  filestore binding update --org 42 --provider LOCAL && filestore migrate run --org 42 --to LOCAL
  filestore migrate run --org 42 --to LOCAL --rate 20MiB
  filestore migrate run --org 42 --to LOCAL --dry-run";

pub(super) const ORGANIZATION_EXPORT: &str = "\
Every file that is not deleted is written to DIR/files/<sub-system>/<id>-<name>, with a name that
is safe here, and its record to DIR/manifest.jsonl: one JSON line per file, with its path, digest
and metadata; the bindings come first. Each file is read back and compared with its digest. Run
the command again after a stop: what is there already is skipped. Bindings are left out where the
key may not list them.

Examples:
  filestore organization export 42 --to ./organization-42
  filestore --data-dir /var/lib/filestore organization export 42 --to /mnt/export/42";

pub(super) const ORGANIZATION_ERASE: &str = "\
The organization is taken off all keys first: keys that name no other are revoked. Then its files
are deleted and their bytes removed wherever they are, without waiting for purge_grace_secs, and
its bindings and remembered replies are forgotten. The receipt says what was removed, and that
each place was looked at; --json has it whole. The exit status is 1 if something is left, such as
at a provider that does not answer: run the command again then.

Examples:
  filestore organization export 42 --to ./organization-42
  filestore organization erase 42 --yes --json > receipt.json";

pub(super) const FSCK: &str = "\
The store serves meanwhile. Without --deep names and sizes are compared, with it every stored
byte. Ctrl-C stops the check; run the command again to go on from there.

With --repair: bytes on the disk that no record names, or that are not what their record says,
are moved to <data-dir>/quarantine; objects that no record names are removed by the purge a day
later; what follows from the rest is set right. Nothing is deleted at once but cached variants.

Exit status: 0 all was looked at and nothing found; 1 nothing found, but a provider could not
be looked at, or the check was stopped; 2 the check failed; 3 something was found.

Examples:
  filestore fsck
  filestore fsck --deep --pace 50MiB
  filestore --data-dir /var/lib/filestore fsck --deep --json > report.json
  filestore fsck --repair";

pub(super) const MIGRATE_STATUS: &str = "\
Examples:
  filestore migrate status --org 42
  filestore migrate status --org 42 --json | jq .running";

pub(super) const MIGRATE_VERIFY: &str = "\
Every byte is read. The exit status is 1 if a file cannot be read or is not what its record
says.

Examples:
  filestore migrate verify --org 42 --to LOCAL
  filestore migrate verify --org 42 --to LOCAL --json | jq .failures";

pub(super) const SYNC_STATUS: &str = "\
Examples:
  filestore sync status
  filestore sync status --json | jq .pending";

pub(super) const VARIANTS_STATUS: &str = "\
Examples:
  filestore variants status
  filestore variants status --json | jq .disk_bytes";

pub(super) const VARIANTS_PRUNE: &str = "\
Examples:
  filestore variants prune
  filestore --data-dir /var/lib/filestore variants prune";

pub(super) const SIGN: &str = "\
The URL needs no key and cannot be changed into one of another file or size. URLs that are made
within a few minutes of each other are equal, so that caches recognise them. On a server that
does not know its public URL, --data-dir prints the path alone.

Examples:
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE --size 200 --expires-in 600
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE --disposition attachment --json | jq -r .url";

pub(super) const SIGN_UPLOAD: &str = "\
A browser or a script sends a form with the field `file` to the URL, without a key. Owner, type
and largest size are fixed by the URL. Each URL is good for one file.

Examples:
  filestore sign-upload --org 42 --sub avatars --max-size 2097152 --type image/png
  curl -F file=@me.png \"$(filestore sign-upload --org 42 --sub avatars --quiet)\"";

pub(super) const SIGNING_LIST: &str = "\
A secret that was rotated out verifies the URLs that it signed until the last of them expires.

Examples:
  filestore signing list
  filestore signing list --json | jq -r '.[] | select(.signs) | .kid'";

pub(super) const SIGNING_ROTATE: &str = "\
Nothing that was handed out breaks. A secret that may be known to others is to be revoked as
well: `filestore signing revoke`.

Examples:
  filestore signing rotate
  filestore --data-dir /var/lib/filestore signing rotate";

pub(super) const SIGNING_REVOKE: &str = "\
All URLs that the secret signed are refused from now on, whenever they would have expired. A
secret of the configuration is revoked there.

Examples:
  filestore signing revoke 3f9a0c51b2d4";

pub(super) const USAGE: &str = "\
Temporary and deleted files count until they are gone, as they do for the quota.

Examples:
  filestore usage --org 42
  filestore usage --org 42 --json | jq .by_location.CLOUD.bytes";

pub(super) const STATUS: &str = "\
Examples:
  filestore status --server https://files.example.org
  filestore status --data-dir /var/lib/filestore --config filestore.toml
  filestore status --json | jq -e '.advice == []'";

pub(super) const HEALTH: &str = "\
Examples:
  filestore health
  filestore health --server https://files.example.org --quiet && echo up";

pub(super) const COMPLETIONS: &str = "\
Examples:
  filestore completions bash > ~/.local/share/bash-completion/completions/filestore
  filestore completions zsh > \"${fpath[1]}/_filestore\"
  filestore completions fish > ~/.config/fish/completions/filestore.fish";

pub(super) const BACKUP_CREATE: &str = "\
A snapshot is of one instant, while the store runs: the database, and the bytes of every file.
What an earlier snapshot in the same place has is not copied again. Each snapshot is whole by
itself or absent; a run that was stopped goes on where it was when it is started again.

A destination with a slash in it is a directory of this machine, and needs --data-dir. One
without is a name that the server's configuration gives ([[backup.destinations]]): of a directory,
or of a provider, such as a bucket. A snapshot holds the secrets of the store: keep it as you keep
the data directory.

Examples:
  filestore --data-dir /var/lib/filestore backup create --to /mnt/backup/files
  filestore backup create --to nightly
  filestore backup create --to nightly --local-only";

pub(super) const METADATA_COPY: &str = "\
The server of the directory must not run. Every row is copied and then compared. Until the end of
that the store is used as before; then its SQLite database gets another name, and only a server that
is configured for PostgreSQL opens the directory.

If --config names a backend of LOCAL (local.backend), the files of the directory move there next,
each compared with its digest: then any number of servers can start. With --leave-files they stay,
for a server that says it is the only one. A copy that was stopped, in either part, goes on when the
command is given again.

Examples:
  filestore metadata copy --from sqlite:/var/lib/filestore --config /etc/filestore.toml
  filestore metadata copy --from sqlite:/var/lib/filestore \\
      --to postgres://filestore@db.example.org/filestore --password-file /run/secrets/database";

pub(super) const BACKUP_VERIFY: &str = "\
Every content is read and its SHA-256 compared, and so is the copy of the database. Exit status
1 if anything is missing or has other bytes.

Examples:
  filestore backup verify --from /mnt/backup/files
  filestore backup verify --from nightly --snapshot 01JD8QZ4T6X3M2V9B7K5N1R0CE --json";

pub(super) const BACKUP_RESTORE: &str = "\
With --all the directory that --data-dir names becomes a store: a copy with an id of its own,
whose files are all on its disk. With --replace it is the store that was backed up: it keeps its
id, and files at providers stay there, each read and compared (--config names the providers, and
the destination, if that is no directory).

With --org or --file, files that the store has not any more come back under their ids; those
that it has are left as they are. Every file is compared with its SHA-256 on the way.

Examples:
  filestore --data-dir /var/lib/restored backup restore --all --from /mnt/backup/files
  filestore --data-dir /var/lib/filestore --config /etc/filestore.toml \\
      backup restore --all --replace --from /mnt/backup/files
  filestore --data-dir /var/lib/restored --config /etc/filestore.toml \\
      backup restore --all --from offsite
  filestore backup restore --org 42 --from nightly
  filestore backup restore --file 01JD8QZ4T6X3M2V9B7K5N1R0CE --from nightly";

pub(super) const BACKUP_LIST: &str = "\
The oldest first. FILES are records, CONTENTS the different bytes that the snapshot holds.

Examples:
  filestore backup list --from /mnt/backup/files
  filestore backup list --from nightly --quiet";

pub(super) const BACKUP_PRUNE: &str = "\
Removes the older snapshots, and the bytes that no kept one names; also what runs that were
stopped have left. Being stopped itself, it leaves bytes that the next run removes.

Examples:
  filestore backup prune --from /mnt/backup/files --keep 14
  filestore backup prune --from nightly --keep 14";

pub(super) const BACKUP_FORGET: &str = "\
A receipt of a purge names each disk or bucket that had snapshots and cannot be looked at, as it may
have the bytes. Forget one when it was destroyed, or nothing is left on it. The one that is there is
not forgotten.

Examples:
  filestore backup forget --from nightly --disk 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore --data-dir /var/lib/filestore backup forget --from /mnt/backup/files";
