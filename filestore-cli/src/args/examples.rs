//! The text that `--help` prints after the options: an explanation, then examples to copy.

pub(super) const TOP: &str = "\
Output: data goes to stdout, and messages go to stderr. With --json, a command prints one JSON
value (`list --all` prints one record per line). With --quiet, it prints only ids, keys and URLs.
A table fits the terminal, or the variable COLUMNS. In a file or a pipe, it is complete.

Exit status:
    0  success
    1  refused, not found, or incomplete
    2  wrong usage or a failure, for example no connection or a full disk
    3  success with findings (`fsck`, `purge receipt --verify`)
  130  stopped by Ctrl-C
  143  stopped by SIGTERM
If you stop a download, filestore removes the partial file.

Examples:
  filestore upload photo.jpg --org 42 --sub gallery
  filestore upload --recursive ./photos --org 42 --sub gallery
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o photo.jpg
  filestore --data-dir /var/lib/filestore list --org 42";

pub(super) const UPLOAD: &str = "\
When the command succeeds, the files are durable: they survive a crash and a power cut.

If an upload of 16 MiB or more to a server stops early, run the same command again within a day:
the upload continues at the last byte that the server has stored. The progress counts these bytes.

With --recursive, filestore uploads all files below a directory in the order of their names. It
includes hidden files and skips symbolic links. A journal records each stored file. If the upload
stops early, run the same command again: filestore skips the files in the journal if their size
and time are unchanged. It uploads a changed file as a new file. If the server's reply gets lost,
a retry within 24 hours does not store the file twice.

Examples:
  filestore upload photo.jpg --org 42 --sub gallery
  filestore upload draft.pdf --org 42 --sub letters --temp
  filestore upload --recursive ./photos --org 42 --sub gallery --jobs 8
  pg_dump shop | filestore upload - --name shop.sql --org 42 --sub backups";

pub(super) const BATCH: &str = "\
The server stores all files of a batch, or no file. Readers never see a part of a batch. To store
each file on its own, use `upload`.

Examples:
  filestore batch front.jpg back.jpg --org 42 --sub gallery
  filestore batch invoice.pdf invoice.xml --org 42 --sub billing --idempotency-key invoice-2041";

pub(super) const GET: &str = "\
filestore writes to a temporary file, checks the SHA-256, and then renames the file. You get the
complete file, or no file. To overwrite an existing file, use --force.

With several ids, the output must be a directory. If two files have the same name, the second gets
its id in front of the name.

Examples:
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore list --org 42 --all --quiet | xargs filestore get -o ./files
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o holiday.jpg --force
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE -o - | tar -tz
  filestore get 01JD8QZ4T6X3M2V9B7K5N1R0CE --range 0-1023 -o head.bin";

pub(super) const VARIANT: &str = "\
A variant is a square WebP image, cropped around the centre. To keep the whole image, use
--fit inside. filestore never enlarges an image: if the original is small enough, you get the
original.

Examples:
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 200
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 1000 --fit inside -o large.webp
  filestore variant 01JD8QZ4T6X3M2V9B7K5N1R0CE 400 -o - > preview.webp";

pub(super) const SHEET: &str = "\
A contact sheet shows up to 100 images in one grid. With --map, the command prints the position of
each image, or the reason why an image is missing.

Examples:
  filestore sheet 01JD8QZ4T6X3M2V9B7K5N1R0CE 01JD8QZ4T6X3M2V9B7K5N1R0CF
  filestore list --json | jq -r '.items[].file_id' | xargs filestore sheet --size 400 -o page.webp
  filestore sheet 01JD8QZ4T6X3M2V9B7K5N1R0CE --map | jq .cells";

pub(super) const INFO: &str = "\
You can see a deleted file, with its purge status, until the purge removes it.

Examples:
  filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256";

pub(super) const EXPLAIN: &str = "\
The command shows the places of the bytes, the reasons (binding, sync, migration, claims), the next
step with its earliest time, failed attempts, and the last events. It also explains a deleted file,
and a purged file until its purge receipt expires (90 days by default).

Sentences can change with each version. In scripts, use --json, and compare the codes.

Examples:
  filestore explain 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore explain 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r '.next[0].code'";

pub(super) const LIST: &str = "\
The command shows one page. To see all pages, use --all. With --json, you get {\"items\": [...],
\"next_cursor\": ...} for a page, and one record per line (NDJSON) with --all.

Without --org, the table has a column with the organization. If the table is wider than the
terminal, filestore first shortens names and types to `…`, then leaves out columns: TYPE, SYNC,
STATUS, UPDATED, SIZE, ORG.

Examples:
  filestore list --org 42 --sub gallery
  filestore list --status TEMP --all
  filestore list --org 42 --name-prefix invoice- --created-after 2026-11-01 --metadata customer=7
  filestore list --all --json | jq -r 'select(.file_size > 1000000) | .file_id'
  filestore list --purge-status SYSTEM_PURGE";

pub(super) const EVENTS: &str = "\
Without --after, the command shows the newest events, newest first. With --after or --all, it shows
the oldest first. --follow waits for new events. After an event, continue with --after and its id.

With --json, you get one event per line. With --quiet, you get the ids of the files.

Examples:
  filestore events
  filestore events --org 42 --types file.ready,file.replaced --follow
  filestore events --follow --types file.ready --quiet | xargs -n 1 ./resize.sh
  filestore events --all --json | jq -r 'select(.type == \"file.deleted\") | .data.file_id'";

pub(super) const THUMBNAIL: &str = "\
A temporary file expires. A thumbnail stays, on the server's own disk.

Examples:
  filestore thumbnail 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore thumbnail \"$(filestore upload small.png --temp --org 42 --sub gallery --quiet)\"";

pub(super) const READY: &str = "\
If you name a file, the same step replaces the bytes. If the file is already ready and you name no
file, the command changes nothing.

Examples:
  filestore ready 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore ready 01JD8QZ4T6X3M2V9B7K5N1R0CE final.pdf";

pub(super) const REPLACE: &str = "\
The id stays, and the version increases by one. Readers get the old bytes or the new bytes, never
a mix. With --if-match, the command replaces the file only if its content is unchanged. The value
is the sha256 that `info` shows, or * for any content.

Examples:
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE photo-2.jpg
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE - --name notes.txt < notes.txt
  filestore replace 01JD8QZ4T6X3M2V9B7K5N1R0CE photo-2.jpg \\
      --if-match \"$(filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256)\"";

pub(super) const EDIT: &str = "\
The bytes, the digest and the version stay. A new name does not change the type, and a new type
does not change the name. --metadata changes the members that it names and keeps all others
(RFC 7396).

Examples:
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --name invoice-7.pdf
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --type text/csv --metadata '{\"customer\": 7}'
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --metadata '{\"paid\": true, \"draft\": null}'
  filestore edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --clear-metadata";

pub(super) const DELETE: &str = "\
The server hides a deleted file at once and purges it after the grace period (`purge_grace_secs`,
default 1 day). Until then, you can bring the file back with `restore`. With --if-match, the
command deletes the file only if its content is unchanged. The value is the sha256 that `info`
shows. With --dry-run, the command only shows the files.

Examples:
  filestore delete 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore delete 01JD8QZ4T6X3M2V9B7K5N1R0CE \\
      --if-match \"$(filestore info 01JD8QZ4T6X3M2V9B7K5N1R0CE --json | jq -r .sha256)\"
  filestore list --org 42 --sub drafts --all --quiet | filestore delete - --dry-run
  filestore list --org 42 --sub drafts --all --quiet | filestore delete -";

pub(super) const RESTORE: &str = "\
You can restore a file during its grace period (`purge_grace_secs`, default 1 day). `info` shows
when the purge is due. An expired TEMP file gets a new lifetime.

Examples:
  filestore restore 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore list --purge-status SYSTEM_PURGE --all --quiet | filestore restore -";

pub(super) const PROVIDER_LIST: &str = "\
LOCAL is the local disk of the server or data directory. It is always in the list.

Examples:
  filestore provider list
  filestore provider list --all
  filestore provider list --json | jq -r '.[].providerCode'";

pub(super) const PROVIDER_CHECK: &str = "\
The check writes, reads and removes its own test objects. If the provider lacks an optional
ability, filestore works without it. If the provider lacks a required ability, the exit status
is 1. The check reports a wrong clock but does not fail because of it.

Examples:
  filestore provider check s3-eu
  filestore --data-dir /var/lib/filestore --config filestore.toml provider check s3-eu";

pub(super) const BINDING_CREATE: &str = "\
An organization has at most one active binding. Without a binding, the server stores its files
locally. Only an organization with a number as its id can have a binding. To store the files of
all other organizations at a provider, set `local.backend` in the server's configuration.

Examples:
  filestore binding create --org 42 --name 'Acme Ltd' --provider LOCAL
  filestore binding create --org 43 --name 'Umbrella' --provider LOCAL --sync";

pub(super) const BINDING_UPDATE: &str = "\
Examples:
  filestore binding update --org 42 --provider LOCAL --sync true
  filestore binding update --org 42 --active false
  filestore binding update --org 42 --active true";

pub(super) const BINDING_LIST: &str = "\
The list includes terminated bindings.

Examples:
  filestore binding list
  filestore binding list --org 42 --json";

pub(super) const KEY_CREATE: &str = "\
The command prints the secret once, because the store keeps only a digest. Without API keys, a
server on loopback accepts every request. After you create the first key, every caller needs a
key, even if you revoke all keys later. To create the first key, use --data-dir. This works even
if the server is running.

A key allows only the scopes that you name. Exception: admin includes all others. With --org '*',
admin also allows the administration of the whole service.

Examples:
  filestore --data-dir /var/lib/filestore key create --org '*' --scope admin
  filestore key create --org 42 --scope read --scope write --name 'the web shop'
  filestore key create --org 42 --scope read --expires-in 30d > shop.key
  FILESTORE_KEY_FILE=shop.key filestore list --org 42";

pub(super) const WEBHOOK_CREATE: &str = "\
The command prints the secret once. The receiver checks the signature of each delivery with it, by
Standard Webhooks. By default, only https:// and public addresses are allowed. See [webhooks] in
the configuration of the server. The server sends nothing before the first event: test the webhook
with `webhook ping`.

Examples:
  filestore webhook create https://search.example.org/hook --types 'file.*' > hook.secret
  filestore webhook create https://example.org/hook --org 42 --from start";

pub(super) const WEBHOOK_LIST: &str = "\
Examples:
  filestore webhook list
  filestore webhook list --json | jq '.[] | select(.state != \"ok\")'";

pub(super) const WEBHOOK_SHOW: &str = "\
Examples:
  filestore webhook show 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const WEBHOOK_EDIT: &str = "\
The webhook keeps its secret, and continues after its last event.

Examples:
  filestore webhook edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --url https://new.example.org/hook
  filestore webhook edit 01JD8QZ4T6X3M2V9B7K5N1R0CE --types file.ready,file.purged";

pub(super) const WEBHOOK_ROTATE: &str = "\
During the overlap, each delivery has two signatures. A receiver with either secret accepts it.

Examples:
  filestore webhook rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore webhook rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE --overlap 0";

pub(super) const WEBHOOK_PING: &str = "\
The event has the type webhook.ping. It is not in the log of events.

Examples:
  filestore webhook ping 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const WEBHOOK_FAILURES: &str = "\
An event in the state waiting is sent again at the time AT. A held event waits for an earlier event
of its file. For a failed event, all attempts have failed: send it with `webhook redeliver`.

Examples:
  filestore webhook failures 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore webhook failures 01JD8QZ4T6X3M2V9B7K5N1R0CE --state failed --quiet";

pub(super) const WEBHOOK_REDELIVER: &str = "\
The events have the same ids as before. They can arrive out of order.

Examples:
  filestore webhook redeliver 01JD8QZ4T6X3M2V9B7K5N1R0CE --failed
  filestore webhook redeliver 01JD8QZ4T6X3M2V9B7K5N1R0CE --event BwcHBwcHBwcAAAAAAAAwOQ
  filestore webhook redeliver 01JD8QZ4T6X3M2V9B7K5N1R0CE --after start --until BwcHBwcHBwcAAAAAAAAwOQ";

pub(super) const WEBHOOK_ENABLE: &str = "\
Examples:
  filestore webhook enable 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore webhook enable 01JD8QZ4T6X3M2V9B7K5N1R0CE --from end";

pub(super) const WEBHOOK_DISABLE: &str = "\
After `webhook enable`, the webhook continues after its last event.

Examples:
  filestore webhook disable 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const WEBHOOK_DELETE: &str = "\
Examples:
  filestore webhook delete 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const UPLOADS_LIST: &str = "\
Lists uploads by tus or by a draft of the IETF, also from browsers, and large files that `upload`
sends. An open upload waits for its client until EXPIRES. An ended upload stays in the list for
some time. Without --org, you need a key with the scope admin for all organizations.

On a narrow terminal, columns that do not fit are left out in this order: CREATED, EXPIRES, FILE.

Examples:
  filestore uploads list
  filestore uploads list --org 42
  filestore uploads list --all --json | jq -r 'select(.state == \"open\") | .upload_id'";

pub(super) const UPLOADS_SHOW: &str = "\
A running transfer continues. You need a key with the scope admin for all organizations.

Examples:
  filestore uploads show 01M80BSYRGX7SCZK48NX4Y3VPZ
  filestore uploads show 01M80BSYRGX7SCZK48NX4Y3VPZ --json | jq .offset";

pub(super) const UPLOADS_CANCEL: &str = "\
Ends a running transfer, removes the received bytes and gives their room back. The client cannot
continue. If the upload is finished, its file stays. You need a key with the scope admin for all
organizations.

Examples:
  filestore uploads cancel 01M80BSYRGX7SCZK48NX4Y3VPZ
  filestore --data-dir /var/lib/filestore uploads cancel 01M80BSYRGX7SCZK48NX4Y3VPZ";

pub(super) const KEY_LIST: &str = "\
Examples:
  filestore key list
  filestore key list --json | jq '.[] | select(.last_used_at == null)'";

pub(super) const KEY_REVOKE: &str = "\
The server refuses the key at once, without a restart. It also refuses all URLs that the key
signed. The key stays in the list.

Examples:
  filestore key revoke 01JD8QZ4T6X3M2V9B7K5N1R0CE";

pub(super) const KEY_ROTATE: &str = "\
The id, the name and the rights stay. The old secret stops working at once. To keep both secrets
valid for some time, use --overlap. The command then prints the end of the old secret.

Examples:
  filestore key rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore key rotate 01JD8QZ4T6X3M2V9B7K5N1R0CE --overlap 1d";

pub(super) const KEY_GENERATE: &str = "\
The command changes no store. Give the hash to the server (`first_key_hash_file` in its
configuration, or FILESTORE_FIRST_KEY_HASH), and the secret to its administrator. At its first
start, the server creates a key from the hash, with the scope admin for all organizations.

Examples:
  filestore key generate
  filestore key generate --json | jq -r .hash > first-key.hash";

pub(super) const PURGE_RUN: &str = "\
Removes expired temporary files, deleted files, and the old bytes of replaced files, after their
grace period. A server does this in the background. Run the command to wait for the result, or if
no server is running. If a file cannot be removed, the exit status is 1, and a later run tries
again.

With --now, the purge does not wait for `purge_grace_secs`. Use it to free space on a full disk or
in a full quota. You cannot restore the files afterwards. While a snapshot is in progress, its files
stay until it is complete. With --org, the command removes only files of that organization, and
leaves the old bytes of replaced files to other runs.

With --data-dir and without a server, filestore uses the lifetimes of the last server run. To use
others, name a configuration with --config. If the server used providers, --config is required.

Examples:
  filestore purge run --dry-run
  filestore purge run
  filestore purge run --now --org 42
  filestore --data-dir /var/lib/filestore purge run --json";

pub(super) const PURGE_RECEIPT: &str = "\
A receipt proves that a file is gone. It exists after the purge and stays for 90 days by default.
It names the caller who deleted the file, the SHA-256 of the bytes, every place that filestore
checked, and the snapshots that still contain the bytes. The server signs each receipt for the
current state. If you prune the snapshots, ask again. To save a receipt, use --json.

--verify needs no server. Without --keys or --public-key, it checks the receipt against the key in
the receipt itself, so compare that key with the store's keys yourself. Only --keys detects a
signature by a retired key.

Exit status of --verify:
    0  valid, and all copies of the file are gone
    1  changed, signed by another key, or signed by a retired key
    2  not a receipt
    3  valid, but copies remain or a place was not checked

Examples:
  filestore purge receipt 01M80BSYQD968W759B8Z4A5VK6
  filestore purge receipt 01M80BSYQD968W759B8Z4A5VK6 --json > receipt.json
  filestore purge receipt-keys --json > keys.json
  filestore purge receipt --verify receipt.json --keys keys.json";

pub(super) const PURGE_RECEIPT_KEYS: &str = "\
The store creates its first key with the first receipt. After a rotation, the old key signs no new
receipts, but still verifies its own.

Examples:
  filestore purge receipt-keys
  filestore purge receipt-keys --rotate";

pub(super) const SYNC_RUN: &str = "\
Copies pending files to the provider of their organization, several at a time. If an organization
has no other provider, its files stay local and count as settled. A server does this in the
background within seconds. If a file fails, the exit status is 1.

Examples:
  filestore sync run
  filestore --data-dir /var/lib/filestore sync run --json";

pub(super) const SYNC_ENQUEUE: &str = "\
A binding applies to new files. This command also queues the older files that the organization's
provider does not have yet.

Examples:
  filestore sync enqueue --org 42
  filestore sync enqueue --org 42 && filestore sync run";

pub(super) const SYNC_RETRY: &str = "\
After 12 failed attempts (`sync.max_attempts`), a file is FAILED. The server still serves it from
its current location. First find the cause with `filestore provider check CODE` and in the
server's log. Then run this command, which also resets the number of attempts.

Examples:
  filestore sync retry
  filestore sync retry --org 42";

pub(super) const MIGRATE_PLAN: &str = "\
The target must be the provider of the organization's binding. Bind the organization first: from
then on, new files go to the provider. Temporary files and thumbnails stay on the local disk.

Examples:
  filestore migrate plan --org 42 --to LOCAL
  filestore migrate plan --org 42 --to LOCAL --json | jq .move_bytes";

pub(super) const MIGRATE_RUN: &str = "\
filestore copies each file, verifies the copy, and then switches the record to it. It removes the
old bytes after their grace period. You can read, replace and delete files at any time.

Ctrl-C completes the copies in progress and prints a report. A second Ctrl-C stops at once. To
continue, run the command again. If files remain, the exit status is 1.

Examples:
  filestore binding update --org 42 --provider LOCAL && filestore migrate run --org 42 --to LOCAL
  filestore migrate run --org 42 --to LOCAL --rate 20MiB
  filestore migrate run --org 42 --to LOCAL --dry-run
  filestore migrate run --org 42 --to LOCAL --detach && filestore migrate status --org 42";

pub(super) const ORGANIZATION_LIST: &str = "\
Lists the organizations that your key can access, if they have files or an active binding.
Temporary and deleted files count until the purge removes them.

Examples:
  filestore organization list
  filestore organization list --all --json | jq -r 'select(.files > 1000) | .organization_id'";

pub(super) const ORGANIZATION_SUB_SYSTEMS: &str = "\
Lists the sub-systems with files. Temporary and deleted files count until the purge removes them.

Examples:
  filestore organization sub-systems 42
  filestore organization sub-systems 42 --all --quiet";

pub(super) const ORGANIZATION_EXPORT: &str = "\
filestore writes every file to DIR/files/<sub-system>/<id>-<name>, with a safe name. It skips
deleted files. It reads each written file again and compares the digest.

DIR/manifest.jsonl starts with a line for the organization's bindings (empty if your key must not
list them). After that, it has one JSON line per file with its path, digest and metadata.

If the export stops early, run the command again: it skips the files that are complete.

Examples:
  filestore organization export 42 --to ./organization-42
  filestore --data-dir /var/lib/filestore organization export 42 --to /mnt/export/42";

pub(super) const ORGANIZATION_ERASE: &str = "\
First, filestore removes the organization from all API keys and revokes keys for this organization
only. Then it deletes all files and removes their bytes everywhere, without waiting for
`purge_grace_secs`. Finally it removes the bindings and stored replies. From then on, the server
refuses uploads that started earlier, uploads to URLs that were signed earlier, and files from
earlier snapshots.

The receipt lists the removed content, every checked place, and the places from where content
might return. To get the whole receipt, use --json. If something remains, for example at an
unreachable provider, the exit status is 1. Run the command again later.

Examples:
  filestore organization erase 42 --dry-run
  filestore organization export 42 --to ./organization-42
  filestore organization erase 42 --yes --json > receipt.json";

pub(super) const FSCK: &str = "\
The store stays in use during the check. By default, the check compares names and sizes. With
--deep, it reads every stored byte. Ctrl-C stops the check. To resume, run the command again.

With --repair, filestore moves two kinds of files to <data-dir>/quarantine: files that no record
names, and files whose bytes do not match their record. The purge removes unknown objects at
providers a day later. Other findings are corrected in place. A repair deletes only cached
variants at once.

Exit status:
    0  no findings
    1  no findings, but a provider was skipped or the check was stopped
    2  the check failed
    3  findings

Examples:
  filestore fsck
  filestore fsck --deep --pace 50MiB
  filestore --data-dir /var/lib/filestore fsck --deep --json > report.json
  filestore fsck --repair
  filestore fsck --deep --detach && filestore fsck --status";

pub(super) const MIGRATE_STATUS: &str = "\
Examples:
  filestore migrate status --org 42
  filestore migrate status --org 42 --json | jq .running";

pub(super) const MIGRATE_VERIFY: &str = "\
The command reads every byte. If a file is unreadable or does not match its record, the exit
status is 1.

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
Anyone with the URL can read this file, or this variant, until the URL expires. If you sign twice
within a few minutes, you get the same URL, so that caches recognize it. If the server does not
know its public URL, --data-dir prints only the path.

If you sign with an API key, revoking that key also ends the URL. With --data-dir, no key is
involved, and the URL works until it expires.

Examples:
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE --size 200 --expires-in 10m
  filestore sign 01JD8QZ4T6X3M2V9B7K5N1R0CE --disposition attachment --json | jq -r .url";

pub(super) const SIGN_UPLOAD: &str = "\
A browser or a script sends a form with the field `file` to the URL, without a key. The URL fixes
the organization, the media type and the maximum size. Each URL accepts one file. With
--resumable, the URL is for Uppy and other clients of tus, or for iOS.

If you sign with an API key, revoking that key also ends the URL. Erasing the organization ends it
too.

Examples:
  filestore sign-upload --org 42 --sub avatars --max-size 2MiB --type image/png
  curl -F file=@me.png \"$(filestore sign-upload --org 42 --sub avatars --quiet)\"
  filestore sign-upload --org 42 --sub videos --resumable";

pub(super) const SIGNING_LIST: &str = "\
After a rotation, the old secret stays in the list until the last URL that it signed expires.

Examples:
  filestore signing list
  filestore signing list --json | jq -r '.[] | select(.signs) | .kid'";

pub(super) const SIGNING_ROTATE: &str = "\
URLs that you have already shared keep working. If a secret leaked, also revoke it with
`filestore signing revoke`.

Examples:
  filestore signing rotate
  filestore --data-dir /var/lib/filestore signing rotate";

pub(super) const SIGNING_REVOKE: &str = "\
From now on, the server refuses all URLs that the secret signed. If the secret is in the server's
configuration, remove it there. To end only the URLs of one API key, revoke the key with
`filestore key revoke`.

Examples:
  filestore signing revoke 3f9a0c51b2d4";

pub(super) const USAGE: &str = "\
Temporary and deleted files count until the purge removes them. The quota counts the same way.

Examples:
  filestore usage --org 42
  filestore usage --org 42 --json | jq .by_location.CLOUD.bytes";

pub(super) const WHOAMI: &str = "\
Examples:
  filestore whoami --server https://files.example.org
  filestore whoami --json | jq .limits.max_file_size";

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

pub(super) const MAN: &str = "\
The command creates the directory, and writes a page for each command.

Examples:
  filestore man ~/.local/share/man/man1 && man filestore-upload
  filestore man /usr/local/share/man/man1";

pub(super) const BACKUP_CREATE: &str = "\
A snapshot contains the database and the bytes of every file at one instant. The store keeps
running. filestore copies only content that earlier snapshots in the same destination do not have,
but every snapshot is complete on its own. If a run stops early, run the command again to resume.

A destination with a slash is a directory on this machine and needs --data-dir. A destination
without a slash is a name from [[backup.destinations]] in the server's configuration, for a
directory or a provider such as a bucket. A snapshot contains the secrets of the store: protect it
like the data directory.

Examples:
  filestore --data-dir /var/lib/filestore backup create --to /mnt/backup/files
  filestore backup create --to nightly
  filestore backup create --to nightly --local-only
  filestore backup create --to nightly --detach && filestore backup list --from nightly";

pub(super) const METADATA_COPY: &str = "\
Stop the server first. filestore copies every row and compares the copies. Then it renames the
SQLite database. From then on, only a server with PostgreSQL in its configuration opens the
directory. Until the rename, the store keeps using SQLite.

If --config names a backend for LOCAL (`local.backend`), filestore then moves the files to that
backend and compares each digest. Afterwards, several servers can use the store. With
--leave-files, the files stay in the directory, and the server needs `only_server = true`. If a
copy stops early, run the command again to resume.

Examples:
  filestore metadata copy --from sqlite:/var/lib/filestore --config /etc/filestore.toml
  filestore metadata copy --from sqlite:/var/lib/filestore \\
      --to postgres://filestore@db.example.org/filestore --password-file /run/secrets/database";

pub(super) const BACKUP_VERIFY: &str = "\
The command reads every content and the copy of the database, and compares each SHA-256. If
something is missing or damaged, the exit status is 1.

Examples:
  filestore backup verify --from /mnt/backup/files
  filestore backup verify --from nightly --snapshot 01JD8QZ4T6X3M2V9B7K5N1R0CE --json";

pub(super) const BACKUP_RESTORE: &str = "\
With --all, filestore creates a store in the directory of --data-dir: a copy with a new id and all
files on its disk. With --all --replace, it restores the original store: the id stays, and files
at providers stay there. filestore reads and compares them. --config names the providers, and the
destination if that is not a directory.

If --config names PostgreSQL, the records go into its schema, which must be new or empty. If it also
names a backend for LOCAL (`local.backend`), filestore then moves the restored files there. With
--sqlite, the records stay in the directory.

A snapshot contains API keys and signing secrets. If you revoked one of them after the snapshot, a
restore makes it valid again. A copy therefore revokes all of them, unless you use --keep-keys.
With --replace they stay valid, unless you use --revoke-keys. The command lists the valid ones.

With --org or --file, filestore restores files that the store no longer has, under their ids. It
does not touch existing files. It compares the SHA-256 of every file. If a file is deleted but not
yet purged, `filestore restore` brings it back.

Examples:
  filestore --data-dir /var/lib/restored backup restore --all --from /mnt/backup/files
  filestore --data-dir /var/lib/filestore --config /etc/filestore.toml \\
      backup restore --all --replace --revoke-keys --from /mnt/backup/files
  filestore --data-dir /var/lib/restored --config /etc/filestore.toml \\
      backup restore --all --from offsite
  filestore backup restore --org 42 --from nightly
  filestore backup restore --file 01JD8QZ4T6X3M2V9B7K5N1R0CE --from nightly";

pub(super) const BACKUP_LIST: &str = "\
The list starts with the oldest snapshot. FILES counts the records. CONTENTS counts the distinct
contents in the snapshot. Without --from, the command uses the destination in the server's
configuration, if there is exactly one.

Examples:
  filestore backup list
  filestore backup list --from /mnt/backup/files
  filestore backup list --from nightly --quiet";

pub(super) const BACKUP_PRUNE: &str = "\
Removes older snapshots, and content that only those snapshots need. It also removes leftovers of
stopped runs. If the prune itself stops early, the next prune finishes the removal.

Examples:
  filestore backup prune --from /mnt/backup/files --keep 14
  filestore backup prune --from nightly --keep 14 --dry-run
  filestore backup prune --from nightly --keep 14";

pub(super) const BACKUP_FORGET: &str = "\
A purge receipt lists every disk or bucket that contained snapshots, because an unmounted disk
might still contain the file. Use this command for a disk that was destroyed or erased. filestore
never forgets the disk that is mounted.

Examples:
  filestore backup forget --from nightly --disk 01JD8QZ4T6X3M2V9B7K5N1R0CE
  filestore --data-dir /var/lib/filestore backup forget --from /mnt/backup/files";
