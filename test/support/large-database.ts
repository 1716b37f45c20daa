import type pg from 'pg';
import { companyIdOf } from './company-ids.js';
import type { AddressValues } from './every-address.js';

export interface LargeScale {
  readonly companies: number;
  /** Each gives a run for every company. */
  readonly nights: number;
  readonly issues: number;
  readonly auditEntries: number;
  readonly notifications: number;
  readonly holds: number;
}

/** A large deployment after a month. */
export const LARGE: LargeScale = {
  companies: 10_000,
  nights: 30,
  issues: 1_000,
  auditEntries: 100_000,
  notifications: 20_000,
  holds: 5_000,
};

/** Errors with which lists fail, and so causes of issues. */
const ERRORS = ['service_error', 'service_unreachable', 'rate_limited', 'unreadable_page', 'access_denied'];
const ACTIONS = ['company.sync', 'company.pause', 'company.resume', 'run.cancel', 'hold.approve', 'hold.reject', 'token.create'];
const WORDS = "'{Nordlys,Fjell,Havgard,Strand,Ekdal,Solberg,Brattli,Vestby}'::text[]";
const TRADES = "'{Fiskeri,Regnskap,Bygg,Sjømat,Transport,Helse,Handel}'::text[]";

const base64url = (json: string) => `translate(encode(convert_to((${json})::text, 'UTF8'), 'base64'), E'+/=\\n', '-_')`;
/** What a certificate says of a row of barriers. */
const STATEMENT = `json_build_object('environment', environment, 'company_id', company_id, 'resource', resource, 'run_id', run_id, 'walk_id', run_id,
  'proof', 'total', 'started_at', '2026-01-01T00:00:00.000Z', 'finished_at', '2026-01-01T00:00:00.000Z', 'verified_at', '2026-01-01T00:00:00.000Z',
  'received', records, 'total_records', records, 'records', records, 'inserted', 0, 'updated', 0, 'unchanged', records, 'deleted', 0,
  'feed', json_build_object('after', 0, 'through', seq), 'catalogue', repeat('0', 64), 'previous', NULL)`;

/** What a company is called by its number, in SQL. */
const idOf = (n: string) => `('00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0'))::uuid`;

/** The company with the number, counted from one. Every hundredth is of `test`, all others of `production`. */
function companyOf(n: number): { readonly environment: 'production' | 'test'; readonly companyId: string } {
  return {
    environment: n % 100 === 0 ? 'test' : 'production',
    companyId: companyIdOf(n),
  };
}

/** An empty database becomes one in which many companies were synced for many nights, all of it by statements of SQL. */
export async function fillLarge(pool: pg.Pool, scale: LargeScale): Promise<void> {
  for (const statement of [...companies(scale), ...runs(scale), ...records(scale), 'VACUUM ANALYZE']) await pool.query(statement);
}

/** Two lists each, and every second one a third. Some must authorize, some are paused, some were never proved, some are late. */
function companies({ companies: count }: LargeScale): string[] {
  return [
    `INSERT INTO muster.connections (environment, company_id, paused, reauthorization_reason, next_sync_at, created_at)
     SELECT CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ${idOf('n')}, n % 150 = 0,
       CASE WHEN n % 200 = 7 THEN 'token_refused' END, now() + interval '1 day', now() - interval '100 days'
     FROM generate_series(1, ${count}) n`,
    `INSERT INTO muster.tokens (environment, company_id, access_token, refresh_token, expires_at, refreshed_at, refresh_at)
     SELECT environment, company_id, 'sealed', 'sealed', now() + interval '50 minutes', now() - interval '10 minutes', now() + interval '40 minutes'
     FROM muster.connections`,
    `INSERT INTO mirror.companies (environment, company_id, name)
     SELECT environment, company_id, (${WORDS})[1 + n % 8] || ' ' || (${TRADES})[1 + n % 7] || ' ' || n || ' AS'
     FROM muster.connections, LATERAL (SELECT right(company_id::text, 12)::int AS n) numbered`,
    `INSERT INTO muster.lists (environment, company_id, resource, records, last_verified_at, unverified_since)
     SELECT environment, company_id, resource, 40 + n % 500,
       CASE WHEN n % 300 = 9 THEN NULL WHEN n % 90 = 11 THEN now() - interval '40 hours' ELSE now() - interval '3 hours' END,
       CASE WHEN n % 120 = 5 THEN now() - interval '4 days' END
     FROM muster.connections, LATERAL (SELECT right(company_id::text, 12)::int AS n) numbered,
       unnest('{departments,employees,absences}'::text[]) AS resource
     WHERE resource <> 'absences' OR n % 2 = 0`,
  ];
}

/** Of the last night some are under way. A walk of each list; of the last three nights some proved nothing, for what they rejected or otherwise. */
function runs({ nights }: LargeScale): string[] {
  return [
    `INSERT INTO muster.runs (environment, company_id, trigger, mode, status, attempts, error, created_at, started_at, finished_at)
     SELECT environment, company_id, CASE WHEN (n + night) % 400 = 0 THEN 'manual' ELSE 'nightly' END, 'full', made.status, 1,
       CASE WHEN made.status = 'failed' THEN jsonb_build_object('code', (${textsOf(ERRORS)})[1 + n % ${ERRORS.length}], 'message', 'It failed.') END,
       began, began, CASE WHEN made.status NOT IN ('queued', 'running') THEN began + interval '2 minutes' END
     FROM generate_series(${nights - 1}, 0, -1) night, muster.connections,
       LATERAL (SELECT right(company_id::text, 12)::int AS n) numbered,
       LATERAL (SELECT CASE WHEN night = 0 AND n % 400 = 3 THEN 'running' WHEN night = 0 AND n % 200 = 1 THEN 'queued'
           WHEN (n + night) % 97 = 0 THEN 'failed' WHEN (n + night) % 501 = 0 THEN 'cancelled' ELSE 'succeeded' END AS status,
         now() - night * interval '1 day' - interval '3 hours' + n * interval '100 milliseconds' AS began) made
     ORDER BY night DESC, n`,
    `INSERT INTO muster.walks (run_id, position, environment, company_id, resource, status, pages, received, unchanged, verified, proof, rejected,
       unverified_reason, error, started_at, finished_at)
     SELECT r.id, row_number() OVER (PARTITION BY r.id ORDER BY l.resource) - 1, r.environment, r.company_id, l.resource, r.status, 3, l.records, l.records,
       r.status = 'succeeded' AND NOT rejects, CASE WHEN r.status = 'succeeded' AND NOT rejects THEN 'total' END,
       CASE WHEN rejects THEN 3 ELSE 0 END, CASE WHEN rejects THEN 'rejected_records' END, r.error, r.started_at, r.finished_at
     FROM muster.runs r JOIN muster.lists l USING (environment, company_id),
       LATERAL (SELECT r.status = 'succeeded' AND r.seq % 60 = 0 AND r.created_at > now() - interval '3 days' AS rejects) proved`,
    `INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
     SELECT id, 1, 0, n, 'no_id', 'e30=' FROM muster.walks, generate_series(1, 3) n WHERE rejected > 0`,
    `INSERT INTO muster.barriers (environment, company_id, resource, seq, verified_at, records, run_id, number)
     SELECT environment, company_id, resource, 0, finished_at, received, run_id, row_number() OVER (ORDER BY finished_at, id)
     FROM muster.walks WHERE verified`,
    `INSERT INTO muster.certificates (id, environment, company_id, resource, verified_at, jws)
     SELECT id, environment, company_id, resource, verified_at, ${base64url(`'{"alg":"EdDSA","kid":"large"}'`)} || '.' ||
       ${base64url(STATEMENT)} || '.' || repeat('A', 86) FROM muster.barriers`,
    'UPDATE muster.change_sequence SET next_barrier = 1 + (SELECT count(*) FROM muster.barriers)',
    `UPDATE muster.lists l SET last_run_id = r.id FROM (
       SELECT DISTINCT ON (environment, company_id) * FROM muster.runs ORDER BY environment, company_id, seq DESC) r
     WHERE l.environment = r.environment AND l.company_id = r.company_id`,
  ];
}

/** What is kept of people and of the service beside the runs. */
function records({ companies: count, issues, auditEntries, notifications, holds }: LargeScale): string[] {
  const ofCompany = `CASE WHEN n % 100 = 0 THEN 'test' ELSE 'production' END, ${idOf(`1 + n % ${count}`)}`;
  return [
    `INSERT INTO muster.issues (cause, environment, resource, severity, companies, sample, told, status, resolved_at)
     SELECT (${textsOf(ERRORS)})[1 + n % ${ERRORS.length}], CASE WHEN n % 10 = 0 THEN 'test' ELSE 'production' END, CASE WHEN n = 75 THEN 'employees' ELSE 'list_' || n / 20 END,
       CASE WHEN n % 2 = 0 THEN 'warning' ELSE 'action' END, 1 + n % 50, ARRAY[${idOf('n')}::text], 1,
       CASE WHEN n % 25 < 24 THEN 'resolved' ELSE 'ongoing' END, CASE WHEN n % 25 < 24 THEN now() - n * interval '1 hour' END
     FROM generate_series(1, ${issues}) n ON CONFLICT DO NOTHING`,
    `INSERT INTO muster.audit (at, actor, role, action, environment, company_id)
     SELECT now() - (${auditEntries} - n) * interval '1 minute', 'person ' || n % 20, 'operator', (${textsOf(ACTIONS)})[1 + n % ${ACTIONS.length}], ${ofCompany}
     FROM generate_series(1, ${auditEntries}) n`,
    `INSERT INTO muster.notifications (environment, company_id, type, change, status, occurred_at, next_attempt_at)
     SELECT ${ofCompany}, CASE WHEN n % 400 = 0 THEN 'deletions_held' ELSE 'run_failed' END, n::text,
       CASE WHEN n % 300 = 0 THEN 'failed' ELSE 'delivered' END, now() - (${notifications} - n) * interval '1 minute', NULL
     FROM generate_series(1, ${notifications}) n`,
    `INSERT INTO muster.holds (environment, company_id, resource, run_id, walk_id, count, living, sample, status, closed_at)
     SELECT ${ofCompany}, 'employees', gen_random_uuid(), gen_random_uuid(), 30, 60, ARRAY[n::text],
       CASE WHEN n % 25 = 0 AND n <= ${count} THEN 'open' WHEN n % 3 = 0 THEN 'rejected' ELSE 'approved' END, CASE WHEN n % 25 > 0 THEN now() END
     FROM generate_series(1, ${holds}) n ON CONFLICT DO NOTHING`,
    `INSERT INTO muster.named_tokens (name, role, token_hash, created_by, revoked_at)
     SELECT 'person ' || n, 'viewer', encode(sha256(n::text::bytea), 'hex'), 'admin', CASE WHEN n % 10 > 0 THEN now() END
     FROM generate_series(1, 2000) n`,
    `WITH batch AS (
       INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
       SELECT 5, ${ofCompany}, 'employees', now() FROM generate_series(1, ${count}) n RETURNING id, size)
     INSERT INTO muster.changes (batch_id, position, record_id, op, data)
     SELECT id, p, p::text, 'update', '{"n": 1}' FROM batch, generate_series(0, size - 1) p`,
  ];
}

function textsOf(texts: readonly string[]): string {
  return `'{${texts.join(',')}}'::text[]`;
}

/** What there is to be asked for. */
export async function largeValues(pool: pg.Pool): Promise<AddressValues> {
  const { environment, companyId } = companyOf(42);
  const idFrom = async (rows: string) => (await pool.query<{ id: string }>(`SELECT id FROM muster.${rows} LIMIT 1`)).rows[0]!.id;
  const run = await idFrom('runs ORDER BY seq DESC OFFSET 100');
  const issue = await idFrom("issues WHERE resource = 'employees'");
  const hold = await idFrom("holds WHERE status = 'open' ORDER BY id");
  const certificate = await idFrom('certificates ORDER BY id');
  const { rows: feeds } = await pool.query<{ feed: string }>('SELECT feed FROM warehouse.feed');
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  return {
    path: {
      environment,
      company_id: companyId,
      resource: 'employees',
      '/api/runs/{id}': run,
      '/runs/{id}': run,
      '/api/issues/{id}': issue,
      '/api/issues/{id}/companies': issue,
      '/issues/{id}': issue,
      '/api/holds/{id}': hold,
      '/api/holds/{id}/rows': hold,
      '/holds/{id}': hold,
      '/api/certificates/{id}': certificate,
      '/certificates/{id}': certificate,
    },
    query: {
      company_id: [companyId],
      resource: ['employees'],
      // The middle of many names, the middle of one, no name, and the beginning of an id.
      q: ['iskeri', '4321 a', 'nobody is called so', '00000000-0000-4000-8000-00000000'],
      company: ['iskeri', '4321 a', 'nobody is called so', '00000000-0000-4000-8000-00000000'],
      issue_id: [issue],
      id: ['1'],
      day: [daysAgo(2).slice(0, 10)],
      before: ['25000'],
      since: [daysAgo(3)],
      until: [daysAgo(2)],
      after: ['0', '25000'],
      feed: [feeds[0]!.feed],
      days: ['30', '90'],
      actor: ['person 7', 'nobody'],
      action: ['run.cancel', 'never.done'],
    },
  };
}
