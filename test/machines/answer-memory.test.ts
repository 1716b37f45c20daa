import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { startNode } from '../support/process.js';
import { largePages } from './large-pages.js';

const COMPANIES = Array.from({ length: 4 }, (_, n) => `00000000-0000-4000-8000-00000000000${n}`);
const OLD_SPACE = '--max-old-space-size=256';
/** What a worker takes that does nothing, the heap's limit, which is the budget here, and what awaits the garbage collector. */
const MOST = 480_000_000;

test.each(['measured', 'chunked', 'gzip'] as const)(
  `four companies with pages of 60 MB are mirrored within the memory of ${OLD_SPACE}: %s`,
  async (sent) => {
    const recordsOnPage = 3_000;
    const service = await largePages({ pages: 3, recordsOnPage, textBytes: 20_000, sent });
    const pager = { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: recordsOnPage };
    const deployment = await Deployment.open({
      catalogue: { employees: { method: 'GET', path: '/api/companies/{company_id}/employees', pager } },
      env: { TEST_BASE_URL: service.url.href, TEST_AUTH_URL: service.url.href },
    });
    const api = await deployment.startApi();
    for (const company_id of COMPANIES) {
      const company = { environment: 'test', company_id, refresh_token: company_id };
      expect(await deployment.call('POST', '/api/companies', company)).toMatchObject({ status: 201 });
    }
    const worker = startNode([OLD_SPACE, 'bin/muster', 'worker'], deployment.env);
    for (const company of COMPANIES)
      expect(await deployment.runEnd(company)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
    expect(await peakBytes(worker.pid)).toBeLessThan(MOST);

    const { rows } = await deployment.database.db.pool.query(
      `SELECT count(*)::int, md5(string_agg(md5(data::text), '' ORDER BY id COLLATE "C")) AS digest
       FROM mirror.employees WHERE deleted_at IS NULL GROUP BY company_id`,
    );
    expect(rows).toEqual(COMPANIES.map(() => ({ count: service.total, digest: service.digest })));
    for (const running of [api, worker]) running.kill('SIGTERM');
    expect((await Promise.all([api.exit, worker.exit])).map(({ code }) => code)).toEqual([0, 0]);
    await deployment.close();
    await service.close();
  },
);

/** Peak resident memory of a process so far. */
async function peakBytes(pid: number): Promise<number> {
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) * 1024;
}
