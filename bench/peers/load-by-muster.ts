import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { anyPort } from '../../test/support/port.js';
import { NODE } from '../bench-setup.js';
import type { Task } from './contestants.js';

const PROGRAM = fileURLToPath(new URL('../../bin/muster', import.meta.url));

/** A whole `up`, from the start of its process until every company's run has succeeded. */
export async function loadByMuster({ providerUrl, companyIds, pageSize, databaseUrl, folder }: Task): Promise<void> {
  const port = anyPort();
  const token = randomBytes(16).toString('hex');
  const catalogue = join(folder, 'catalogue.json');
  writeFileSync(catalogue, JSON.stringify(catalogueOf(pageSize)));
  const log = openSync(join(folder, 'log'), 'a');
  const up = spawn(NODE, [PROGRAM, 'up', '--json'], {
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env['PATH'],
      PORT: String(port),
      MUSTER_HOME: folder,
      DATABASE_URL: databaseUrl,
      MUSTER_ADMIN_TOKEN: token,
      MUSTER_ENCRYPTION_KEYS: `peers:${Buffer.alloc(32, 1).toString('base64')}`,
      MUSTER_CATALOGUE: catalogue,
      // No nightly run comes between, at whatever hour this is measured.
      SYNC_CRON: '0 0 29 2 *',
      TEST_BASE_URL: providerUrl,
      TEST_AUTH_URL: providerUrl,
      TEST_CLIENT_ID: 'bench',
      TEST_CLIENT_SECRET: 'bench-secret',
    },
  });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const call = async (method: string, path: string, body: object | null) => {
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body && JSON.stringify(body) });
      if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`);
    };
    while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) {
      if (up.exitCode !== null) throw new Error(`Muster did not start: see ${join(folder, 'log')}`);
      await sleep(20);
    }
    const newest = 'SELECT coalesce(max(seq), 0)::text AS seq FROM muster.runs';
    const { seq } = (await pool.query<{ seq: string }>(newest)).rows[0]!;
    const onboard = (company_id: string) =>
      call('POST', '/api/companies', { environment: 'test', company_id, refresh_token: `${company_id}/${Date.now()}` });
    if (seq === '0') await Promise.all(companyIds.map(onboard));
    else await call('POST', '/api/syncs', {});
    const ended = `SELECT count(*) FILTER (WHERE status = 'succeeded')::int AS n, count(*) FILTER (WHERE status = 'failed')::int AS failed
      FROM muster.runs WHERE seq > $1`;
    for (let n = 0; n < companyIds.length; await sleep(50)) {
      const [counted] = (await pool.query<{ n: number; failed: number }>(ended, [seq])).rows;
      if (counted!.failed > 0) throw new Error(`A run failed: see ${join(folder, 'log')}`);
      n = counted!.n;
    }
  } finally {
    await pool.end();
    up.kill('SIGTERM');
    if (up.exitCode === null) await once(up, 'exit');
  }
}

function catalogueOf(size: number): object {
  return {
    employees: {
      method: 'GET',
      path: '/api/companies/{company_id}/employees',
      pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size },
    },
  };
}
