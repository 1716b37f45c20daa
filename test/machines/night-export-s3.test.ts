import { createHash } from 'node:crypto';
import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OverviewModel } from '../../src/api/operation/overview.js';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { BUCKET, type S3Server, startS3Server } from './s3-server.js';

/** Far from the hour at which this runs: no other night begins meanwhile. */
const BEGAN = new Date(Date.now() - 12 * 3_600_000);
const NIGHT = BEGAN.toISOString().slice(0, 10);

let s3: S3Server;
let deployment: Deployment;
let processes: TestProcess[] = [];

beforeAll(async () => {
  s3 = await startS3Server();
  deployment = await Deployment.open({
    sandbox: { companies: [{ name: 'Lasterampe AS', employees: 40, departments: 3 }] },
    env: {
      SYNC_CRON: `0 ${BEGAN.getUTCHours()} * * *`,
      SYNC_SPREAD_MINUTES: '0',
      EXPORT_TO: `s3://${BUCKET}/nights/`,
      EXPORT_RESOURCES: 'employees',
      ...s3.env,
    },
  });
  processes = [await deployment.startApi(), await deployment.startWorker()];
});
afterAll(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
  await s3.close();
});

const lastExport = async () => ((await deployment.call('GET', '/api/overview')).body as OverviewModel).last_export;

async function read(key: string): Promise<Uint8Array> {
  const { Body } = await s3.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  return Body!.transformToByteArray();
}

test('a night is exported to S3, and what S3 refuses is tried again', async () => {
  const { companyId } = deployment.sandbox.companies[0]!;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
  const { pool } = deployment.database.db;
  await pool.query('UPDATE muster.connections SET next_sync_at = now()');
  await waitFor(async () => (await lastExport())?.written === 1, { what: 'the export' });
  const key = `nights/test/employees/${NIGHT}.parquet`;
  const { Contents = [] } = await s3.client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
  expect(Contents.map(({ Key }) => Key)).toEqual([key, `${key}.manifest.json`, `${key}.manifest.jws`]);
  const manifest = JSON.parse(Buffer.from(await read(`${key}.manifest.json`)).toString());
  const sha256 = createHash('sha256')
    .update(await read(key))
    .digest('hex');
  expect(manifest).toMatchObject({ resource: 'employees', format: 'parquet', rows: 40, sha256, lists: [{ records: 40 }] });

  const [, worker] = processes;
  worker!.kill('SIGTERM');
  await worker!.exit;
  processes = [processes[0]!, await deployment.startWorker({ EXPORT_TO: 's3://no-such-bucket/nights' })];
  await pool.query('DELETE FROM muster.night_exports');
  await waitFor(async () => (await lastExport())?.failed === 1, { what: 'a failure' });
  expect(await lastExport()).toMatchObject({ written: 0, problem: expect.stringMatching(/NoSuchBucket.*Make the bucket first/) });
  for (const { stderr } of processes) expect(stderr).not.toContain(s3.env['AWS_SECRET_ACCESS_KEY']);
});
