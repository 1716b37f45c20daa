import { waitFor } from '../support/wait-for.js';
import { COMPANIES, type Deployment } from './deployment.js';

const NIGHTS = 29;

/** Nightly runs of the companies, not all of which went well, as if they had been mirrored for a month; they come before every run that is made. */
export async function addPastNights({ database, call }: Deployment): Promise<void> {
  const { pool } = database.db;
  const nights = async () => ((await call('GET', '/api/nights')) as { data: unknown[] }).data.length;
  await waitFor(async () => (await nights()) > 0, { what: 'the first look of the sweep for nights' });
  await pool.query(
    `WITH run AS (
       INSERT INTO muster.runs (environment, company_id, trigger, mode, status, created_at, started_at, finished_at)
       SELECT 'test', company::uuid, 'nightly', 'full', CASE WHEN n IN (4, 13) AND c <> 1 OR n = 17 AND c = 3 THEN 'failed' ELSE 'succeeded' END,
         began + c * interval '9 minutes', began + c * interval '10 minutes', began + c * interval '10 minutes' + (c + n % 5) * interval '47 seconds'
       FROM generate_series(${NIGHTS}, 0, -1) n, unnest($1::text[]) WITH ORDINALITY AS companies(company, c),
         LATERAL (SELECT date_trunc('day', now() - interval '2 hours', 'UTC') - n * interval '1 day' + interval '2 hours' AS began) night
       WHERE n NOT IN (21, 22) ORDER BY n DESC, c
       RETURNING *, extract(day FROM now() - created_at)::int AS ago)
     INSERT INTO muster.walks (run_id, position, environment, company_id, resource, status, verified, unverified_reason, records, inserted, updated, deleted,
       received, unchanged)
     SELECT id, position - 1, environment, company_id, resource, status, status = 'succeeded' AND ago % 11 <> 8,
       CASE WHEN status = 'succeeded' AND ago % 11 = 8 THEN 'list_changed' END,
       CASE WHEN status = 'succeeded' THEN size - ago * size / 900 + ago % 4 * size / 700 END, CASE WHEN status = 'succeeded' THEN 2 + ago * 13 % 31 ELSE 0 END,
       ago * 29 % 97, CASE WHEN status = 'succeeded' THEN ago * 17 % 23 ELSE 0 END, size, size
     FROM run, unnest('{employees,departments}'::text[], '{3000,188}'::int[]) WITH ORDINALITY AS lists(resource, size, position)`,
    [COMPANIES.map(({ companyId }) => companyId)],
  );
  // The sweep begins anew, from the first run on.
  await pool.query('TRUNCATE muster.nights CASCADE');
  await waitFor(async () => (await nights()) > NIGHTS, { what: 'the nights to be counted' });
}
