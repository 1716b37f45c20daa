import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { digestOf, type Signer, signerOfSeed } from '../../src/certificates/certificate.js';
import { certificateSweep } from '../../src/certificates/certificate-sweep.js';
import type { Statement } from '../../src/certificates/statement.js';
import { systemClock } from '../../src/core/clock.js';
import type { Database } from '../../src/db/connection/database.js';

const COMPANY_ID = '9a27e5b0-7c63-4a4e-8d9f-0c1f6f1d2b3a';

/** A signer with a key of its own. */
export function someSigner(): Promise<Signer> {
  const { privateKey } = generateKeyPairSync('ed25519');
  return signerOfSeed(privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32));
}

export function statement(members: Partial<Statement> = {}): Statement {
  return {
    environment: 'production',
    company_id: COMPANY_ID,
    resource: 'employees',
    run_id: randomUUID(),
    walk_id: randomUUID(),
    proof: 'join',
    started_at: '2026-11-25T02:00:00.000Z',
    finished_at: '2026-11-25T02:00:03.000Z',
    verified_at: '2026-11-25T02:00:00.100Z',
    received: 60,
    total_records: 60,
    records: 60,
    held: 0,
    inserted: 60,
    updated: 0,
    unchanged: 0,
    deleted: 0,
    feed: { after: 0, through: 60 },
    catalogue: 'a'.repeat(64),
    previous: null,
    ...members,
  };
}

/** Certificates of consecutive nights of one list. */
export async function chainOf(signer: Signer, nights: number): Promise<string[]> {
  const chain: string[] = [];
  for (let n = 0; n < nights; n++) {
    const last = chain.at(-1);
    chain.push(
      await signer.sign(
        statement({
          verified_at: `2026-11-${10 + n}T02:00:00.100Z`,
          feed: { after: n * 10, through: n * 10 + 10 },
          previous: last === undefined ? null : digestOf(last),
        }),
      ),
    );
  }
  return chain;
}

/** Every text that differs from this one in one byte: the next character in its place, and one that base64url does not have. */
export function* changedTexts(text: string): Generator<string> {
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  for (let n = 0; n < text.length; n++) {
    const other = ALPHABET[(ALPHABET.indexOf(text[n]!) + 1) % 64]!;
    for (const changed of [other, ' ']) if (changed !== text[n]) yield text.slice(0, n) + changed + text.slice(n + 1);
  }
}

/** The example of a document in this language. */
export function exampleOf(document: string, language: string): string {
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(document)![1]!;
}

/** What verified walks leave, behind barriers that have their numbers. The company of the number n, counted from one, has the id of `companyIdOf`. */
export async function makeUnsigned(
  { pool }: Database,
  { companies, nights }: { companies: number; nights: number },
): Promise<void> {
  await pool.query(
    `WITH made AS (
       INSERT INTO muster.barriers (number, environment, company_id, resource, seq, verified_at, records, run_id)
       SELECT row_number() OVER (ORDER BY night, n, resource), CASE WHEN n % 2 = 0 THEN 'production' ELSE 'test' END,
         ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, resource, night * 100, now() + night * interval '1 hour', 5, gen_random_uuid()
       FROM generate_series(1, $1::int) n, generate_series(1, $2::int) night, unnest('{employees,departments}'::text[]) resource
       ORDER BY night, n, resource
       RETURNING *)
     INSERT INTO muster.certificates (id, environment, company_id, resource, verified_at, facts)
     SELECT id, environment, company_id, resource, verified_at, jsonb_build_object('run_id', run_id, 'walk_id', gen_random_uuid(), 'proof', 'join',
       'started_at', verified_at, 'finished_at', verified_at, 'verified_at', verified_at, 'received', 5, 'total_records', 5, 'records', 9, 'held', 4,
       'inserted', 0, 'updated', 0, 'unchanged', 5, 'deleted', 0, 'catalogue', repeat('a', 64))
     FROM made`,
    [companies, nights],
  );
}

/** Signs all that can be signed. */
export function signAll(db: Database, signer: Signer): Promise<void> {
  return certificateSweep({ db, signer, clock: systemClock, logger: pino({ level: 'silent' }) })();
}
