// A story through the client that a generator makes of the OpenAPI document: upload a picture, show a
// variant of it, find it in the list, delete it. Every call and every field is checked by the compiler.
import assert from "node:assert/strict";
import { crc32, deflateSync } from "node:zlib";

import { client } from "./client/client.gen";
import { changeFile, checkHealth, deleteFile, editFile, getFile, getFileInfo, getVariant, listFiles, uploadFile } from "./client";
import type { FileRecord, Problem } from "./client";

const key = process.env.FILESTORE_KEY;
client.setConfig({ baseUrl: `${process.env.FILESTORE_URL}/api/v1`, auth: () => key });

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, "ascii"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** Makes a grey PNG of that many pixels on each side. */
function png(side: number): Blob {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 0, 0, 0, 0], 8);
  const rows = Buffer.alloc(side * (side + 1), 0x80);
  for (let row = 0; row < side; row++) rows[row * (side + 1)] = 0;
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
  return new Blob([new Uint8Array(Buffer.concat([signature, ...chunks]))]);
}

async function main() {
  const health = await checkHealth({ throwOnError: true });
  assert.equal(health.data.message, "filestore is running");

  const picture = png(300);
  const uploaded = await uploadFile({
    body: { organization_id: "7", sub_system: "story", original_name: "grey.png", upload_temp: true, file: picture },
    throwOnError: true,
  });
  const record: FileRecord = uploaded.data;
  assert.equal(record.mime_type, "image/png");
  assert.deepEqual([record.width, record.height, record.status], [300, 300, "TEMP"]);

  const path = { file_id: record.file_id };
  const etag = uploaded.response.headers.get("etag") ?? undefined;
  const changed = await changeFile({
    body: { file_id: record.file_id, make_as_ready: true }, headers: { "If-Match": etag }, throwOnError: true,
  });
  assert.equal(changed.data.sync_status, "NONE");

  const edited = await editFile({
    path, body: { original_name: "gray.png", metadata: { customer: 7 } }, headers: { "If-Match": etag }, throwOnError: true,
  });
  const renamed = edited.data as FileRecord;
  assert.deepEqual([renamed.original_name, renamed.metadata, renamed.version], ["gray.png", { customer: 7 }, 1]);

  const variant = await getVariant({ path: { ...path, width: 200, height: 200 }, parseAs: "blob", throwOnError: true });
  const bytes = Buffer.from(await (variant.data as Blob).arrayBuffer());
  assert.equal(variant.response.headers.get("content-type"), "image/webp");
  assert.equal(bytes.subarray(8, 12).toString(), "WEBP");

  const content = await getFile({ path, query: { disposition: "attachment" }, parseAs: "blob", throwOnError: true });
  assert.equal((content.data as Blob).size, picture.size);

  const listed = await listFiles({ query: { organization_id: "7", sub_system: "story", limit: 10 }, throwOnError: true });
  assert.deepEqual(listed.data.items.map((item) => item.file_id), [record.file_id]);
  const info = await getFileInfo({ path, throwOnError: true });
  assert.equal(info.data.sha256, record.sha256);

  const deleted = await deleteFile({ path, throwOnError: true });
  assert.equal(deleted.data.purgePending, true);
  const gone = await getFile({ path });
  const problem = gone.error as Problem;
  assert.deepEqual([gone.response?.status, problem.code], [404, "not_found"]);
  console.log("the generated client uploads, shows a variant, lists and deletes");
}

void main();
