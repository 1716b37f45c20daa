import { describe, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { redisUrl } from '../support/redis.js';
import { as, cleanups, makeRole, run } from './database-roles.js';

describe.each(['Redis', 'PostgreSQL'])('with the queue in %s', (queue) => {
  const redis = queue === 'Redis' ? { REDIS_URL: redisUrl()! } : undefined;

  test('a role with rights on data alone does all that api and workers do', async () => {
    const role = await makeRole();
    const deployment = await Deployment.open({
      redisUrl: redis?.REDIS_URL,
      sandbox: {
        companies: [
          { name: 'One', employees: 1_234 },
          { name: 'Two', employees: 12 },
        ],
      },
    });
    cleanups.push(() => deployment.close());
    const owner = deployment.env.DATABASE_URL!;
    expect(await run(['migrate', '--grant-runtime', role], deployment.env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(role),
    });
    deployment.env.DATABASE_URL = as(role, owner);
    const processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
    const stop = async () => {
      for (const process of processes) process.kill('SIGTERM');
      await Promise.all(processes.map(({ exit }) => exit));
    };
    cleanups.push(stop);

    const [one, two] = deployment.sandbox.companies.map(({ companyId }) => companyId) as [string, string];
    for (const company of [one, two]) {
      await deployment.onboard(company);
      expect(await deployment.runEnd(company)).toMatchObject({ status: 'succeeded', trigger: 'onboarding' });
    }
    const { pool } = deployment.database.db;
    await pool.query('UPDATE muster.connections SET next_sync_at = now(); UPDATE muster.tokens SET refresh_at = now()');
    const night = () => waitFor(async () => (await deployment.lastRun(one)).trigger === 'nightly');
    await night();
    expect(await deployment.runEnd(one)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, { verified: true }] });
    expect((await deployment.call('POST', `/api/companies/test/${one}/rekey`, { resource: 'employees' })).status).toBe(200);
    await deployment.call('POST', `/api/companies/test/${one}/sync`, { mode: 'full' });
    expect(await deployment.runEnd(one)).toMatchObject({ status: 'succeeded' });
    expect(await mirrored(deployment.database.db, 'employees', one)).toEqual(upstream(deployment.sandbox, 'employees', one));
    expect((await deployment.call('GET', '/api/changes?limit=10')).status).toBe(200);
    expect((await deployment.call('POST', `/api/companies/test/${two}/connect-link`)).status).toBe(201);
    expect((await run(['rotate-keys'], deployment.env)).code).toBe(0);
    expect((await deployment.call('DELETE', `/api/companies/test/${two}`)).status).toBe(204);
    expect((await deployment.fetch('/readyz')).status).toBe(200);
    expect(await (await deployment.fetch('/metrics')).text()).toContain('muster_');
    for (const { stderr } of processes) expect(stderr).not.toMatch(/permission denied|42501/);
  });
});
