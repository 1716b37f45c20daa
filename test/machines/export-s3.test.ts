import { createHash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { makeGadgets } from '../warehouse/gadgets.js';
import { BUCKET, type S3Server, startS3Server } from './s3-server.js';

const RECORDS = 2_000;
/** Of the large one, before its last: that one is sent when the manifest is there. */
const PARTS = 4;
const KILLS = Number(process.env['EXPORT_KILLS'] ?? 10);

let database: TestDatabase;
let s3: S3Server;
beforeAll(async () => {
  [database, s3] = await Promise.all([testDatabase(), startS3Server()]);
  await makeGadgets(database.db.pool, RECORDS);
  // Forty megabytes: five parts.
  await database.db.pool.query(`
    CREATE TABLE mirror.large (LIKE mirror.employees INCLUDING ALL);
    CREATE VIEW warehouse.large AS
      SELECT environment, company_id, id, repeat('x', 20000) || pg_sleep(0.001) AS text FROM mirror.gadgets WHERE deleted_at IS NULL`);
});
afterAll(async () => {
  await s3.close();
  await database.close();
});

let folder: string;
beforeEach(() => {
  folder = `folder-${Math.random()}`;
});

function exporting(resource: string, address: string, env: Record<string, string> = {}): TestProcess {
  return startMuster(['export', resource, '--format', 'ndjson', '--output', address], {
    DATABASE_URL: database.url,
    MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    ...s3.env,
    ...env,
  });
}

async function objects(): Promise<string[]> {
  const { Contents = [] } = await s3.client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: `${folder}/` }));
  return Contents.map(({ Key }) => Key!.slice(folder.length + 1));
}

async function uploads(): Promise<number> {
  const { Uploads = [] } = await s3.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }));
  return Uploads.filter(({ Key }) => Key!.startsWith(folder)).length;
}

async function read(name: string): Promise<Uint8Array> {
  const { Body } = await s3.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: `${folder}/${name}` }));
  return Body!.transformToByteArray();
}

test.each([
  ['one request', 'gadgets'],
  ['parts', 'large'],
])('an object sent in %s is the export, with its manifest beside it', async (_, resource) => {
  const running = exporting(resource, `s3://${BUCKET}/${folder}/a name/export.ndjson`);
  expect(await running.exit, running.stderr).toEqual({ code: 0, signal: null });
  expect(await objects()).toEqual(['', '.manifest.json', '.manifest.jws'].map((suffix) => `a name/export.ndjson${suffix}`));
  const text = Buffer.from(await read('a name/export.ndjson.manifest.json')).toString();
  const [, signed = ''] = Buffer.from(await read('a name/export.ndjson.manifest.jws'))
    .toString()
    .split('.');
  expect(Buffer.from(signed, 'base64url').toString()).toBe(text);
  const manifest = JSON.parse(text);
  const bytes = await read('a name/export.ndjson');
  expect(manifest).toMatchObject({ resource, rows: RECORDS, sha256: createHash('sha256').update(bytes).digest('hex') });
  expect(await uploads()).toBe(0);
});

test('one that is called off gives its parts back, one that is killed leaves no object, and what stood there stays', async () => {
  const address = `s3://${BUCKET}/${folder}/large.ndjson`;
  await s3.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: `${folder}/large.ndjson`, Body: 'what stood there' }));
  const calledOff = exporting('large', address);
  await waitFor(async () => (await uploads()) === 1, { what: 'an upload of parts' });
  calledOff.kill('SIGTERM');
  expect(await calledOff.exit).toEqual({ code: 1, signal: null });
  expect(calledOff.stderr).toMatch(/called off/);
  expect(await uploads()).toBe(0);

  const killed = exporting('large', address);
  await waitFor(async () => (await uploads()) === 1, { what: 'an upload of parts' });
  killed.kill('SIGKILL');
  await killed.exit;
  expect(await objects()).toEqual(['large.ndjson']);
  expect(Buffer.from(await read('large.ndjson')).toString()).toBe('what stood there');
});

/** How many parts of the upload under way the server has; undefined where none is under way. */
async function parts(): Promise<number | undefined> {
  const { Uploads = [] } = await s3.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }));
  const upload = Uploads.find(({ Key }) => Key!.startsWith(folder));
  if (!upload) return undefined;
  const asked = new ListPartsCommand({ Bucket: BUCKET, Key: upload.Key, UploadId: upload.UploadId });
  return (await s3.client.send(asked)).Parts?.length ?? 0;
}

/** From the first request for parts to the end, where the signed manifest, the manifest and then the object appear. */
test(`killed at ${KILLS} moments, it never leaves half an object under the final name`, async () => {
  const name = 'large.ndjson';
  const key = { Bucket: BUCKET, Key: `${folder}/${name}` };
  const seen = async () => {
    const there = await objects();
    // These parts are followed by the two manifests and the object.
    return there.length > 0 ? PARTS + there.length : ((await parts()) ?? -1);
  };
  let killed = 0;
  for (let n = 0; n < KILLS; n += 1) {
    const running = exporting('large', `s3://${BUCKET}/${folder}/${name}`);
    const until = Math.round(((PARTS + 3) * n) / (KILLS - 1 || 1));
    await waitFor(async () => (await seen()) >= until, { what: `${until} parts of the upload`, intervalMs: 1 });
    running.kill('SIGKILL');
    if ((await running.exit).signal === 'SIGKILL') killed += 1;
    const there = await objects();
    if (there.includes(name)) {
      const manifest = JSON.parse(Buffer.from(await read(`${name}.manifest.json`)).toString());
      const sha256 = createHash('sha256')
        .update(await read(name))
        .digest('hex');
      expect(manifest).toMatchObject({ rows: RECORDS, sha256 });
    }
    for (const Key of there) await s3.client.send(new DeleteObjectCommand({ Bucket: BUCKET, Key: `${folder}/${Key}` }));
    // What S3 would remove by a lifecycle rule.
    const { Uploads = [] } = await s3.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }));
    for (const { UploadId } of Uploads.filter(({ Key }) => Key === key.Key))
      await s3.client.send(new AbortMultipartUploadCommand({ ...key, UploadId }));
  }
  expect(killed).toBeGreaterThan(KILLS / 2);
  expect(await exporting('large', `s3://${BUCKET}/${folder}/${name}`).exit).toEqual({ code: 0, signal: null });
  expect(await objects()).toEqual([name, `${name}.manifest.json`, `${name}.manifest.jws`]);
});

test('what S3 refuses is said, without the secret', async () => {
  const noBucket = exporting('gadgets', `s3://no-such-bucket/${folder}/x.ndjson`);
  expect(await noBucket.exit).toEqual({ code: 1, signal: null });
  expect(noBucket.stderr).toMatch(/NoSuchBucket.*Make the bucket first.*\[export_failed\]/);
  const nobody = exporting('gadgets', `s3://${BUCKET}/${folder}/x.ndjson`, {
    AWS_ACCESS_KEY_ID: '',
    AWS_SECRET_ACCESS_KEY: '',
    AWS_EC2_METADATA_DISABLED: 'true',
    HOME: '/nonexistent',
  });
  expect(await nobody.exit).toEqual({ code: 1, signal: null });
  expect(nobody.stderr).toMatch(/Set AWS_ACCESS_KEY_ID.*\[export_failed\]/);
  const away = exporting('gadgets', `s3://${BUCKET}/${folder}/x.ndjson`, { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9' });
  expect(await away.exit).toEqual({ code: 1, signal: null });
  expect(away.stderr).toMatch(/\[export_failed\]/);
  for (const { stderr } of [noBucket, nobody, away]) expect(stderr).not.toContain(s3.env['AWS_SECRET_ACCESS_KEY']);
  expect(await objects()).toEqual([]);
});
