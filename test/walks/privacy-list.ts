import { pino } from 'pino';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import type { Database } from '../../src/db/connection/database.js';
import { reconcileIssues } from '../../src/db/tables/issues.js';
import { tryLock } from '../../src/db/tables/locks.js';
import { privacySweep } from '../../src/erasure/privacy-sweep.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { PrivacyKey } from '../../src/privacy/privacy-key.js';
import type { PrivacyRules } from '../../src/privacy/rules.js';
import { askedFor } from './sync-harness.js';

export const KEY = Buffer.alloc(32, 1);
export const privacyKey = (bytes: Buffer = KEY) => new PrivacyKey(new Secret(bytes.toString('base64')));

/** Two lists of people, with these rules. */
export function peopleWith(privacy: PrivacyRules, key = privacyKey()): readonly Endpoint[] {
  const entry = (resource: string) => ({
    method: 'GET',
    path: `/api/companies/{company_id}/${resource}`,
    pager: { style: 'skip-take', in: 'query', size: 4 },
    ...(Object.keys(privacy).length > 0 && { privacy }),
  });
  return validateCatalogue({ people: entry('people'), guests: entry('guests') }, 'test', key).endpoints;
}

/** Texts of records by company and list. */
export class People {
  readonly #texts = new Map<string, string[]>();

  set(companyId: string, resource: string, texts: readonly string[]): void {
    this.#texts.set(`${companyId}/${resource}`, [...texts]);
  }

  readonly respond = ({ path, query }: ApiRequest): string | undefined => {
    const [, , , companyId, resource] = path.split('/');
    const texts = this.#texts.get(`${companyId}/${resource}`) ?? [];
    const { skip, take } = askedFor({ body: undefined, query });
    return `{"totalRecords":${texts.length},"data":[${texts.slice(skip, skip + take).join(',')}]}`;
  };
}

/** Every row of every table and view of ours, as text, with what stands there as bytes or in base64. */
export async function dump({ pool }: Pick<Database, 'pool'>): Promise<string> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
     WHERE table_schema IN ('mirror', 'muster', 'warehouse', 'bullmq', 'public')`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    texts.push(...rows.map(({ row }) => row));
  }
  const { rows: kept } = await pool.query<{ text: string }>(
    `SELECT encode(texts, 'escape') AS text FROM muster.change_batches WHERE texts IS NOT NULL
     UNION ALL SELECT encode(decode(text, 'base64'), 'escape') FROM muster.rejected_records`,
  );
  return [...texts, ...kept.map(({ text }) => text)].join('\n');
}

/** Ongoing issues of privacy: cause, resource and companies. */
export async function privacyIssues(db: Database): Promise<unknown[]> {
  await reconcileIssues(
    db,
    { take: (tx) => tryLock(tx, 'issues') },
    {
      resources: ['people', 'guests'],
      staleAfterHours: 26,
      secondsLeft: 1e6,
      isNightYoung: true,
      environments: [],
      isWorker: true,
      hasWebhook: false,
      exported: [],
    },
  );
  const rows = await db.prisma.issue.findMany({ where: { status: 'ongoing', cause: { startsWith: 'privacy' } } });
  return rows.map(({ cause, resource, companies }) => `${cause} ${resource} ${companies}`).toSorted();
}

export function sweepFor(db: Database, endpoints: readonly Endpoint[]): () => Promise<void> {
  const catalogue = { endpoints, get: (resource: string) => endpoints.find((endpoint) => endpoint.resource === resource) };
  return privacySweep({ db, catalogue, clock: systemClock, logger: pino({ level: 'silent' }) });
}
