import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicKey, readCertificate } from '../../src/certificates/certificate.js';
import { checkCertificates } from '../../src/certificates/check.js';
import { listCertificates, listSigningKeys } from '../../src/db/tables/certificates.js';
import { makeUnsigned, signAll, someSigner } from '../certificates/certificate-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { startNode } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

const SCRIPT = fileURLToPath(new URL('signing-process.mjs', import.meta.url));
const COMPANIES = 10;
const NIGHTS = 6;
/** Two lists each. */
const COUNT = 2 * COMPANIES * NIGHTS;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  await makeUnsigned(database.db, { companies: COMPANIES, nights: NIGHTS });
});
afterAll(() => database.close());

const signed = () => listCertificates(database.db, { limit: 500 });

test('signers that are killed while they sign leave nothing half done, and the next one signs each once', async () => {
  const signer = await someSigner();
  for (const hangsAt of [1, 7, COUNT]) {
    const doomed = startNode([SCRIPT, String(hangsAt)], { DATABASE_URL: database.url });
    await doomed.waitForOutput(/hangs/);
    // Another worker does not wait for a signer that hangs, and signs nothing beside it.
    await signAll(database.db, signer);
    expect((await signed()).data).toHaveLength(0);
    doomed.kill('SIGKILL');
    await doomed.exit;
    expect((await signed()).data).toHaveLength(0);
  }
  // The killed one's connection may be listed for a moment, and its lock with it.
  await waitFor(async () => {
    await signAll(database.db, signer);
    return (await signed()).data.length > 0;
  });
  const { data } = await signed();
  expect(data).toHaveLength(COUNT);
  expect(new Set(data.map(({ jws }) => readCertificate(jws).statement.walk_id)).size).toBe(COUNT);
  const keys = (await listSigningKeys(database.db)).map(publicKey);
  const { findings } = await checkCertificates(
    data.map(({ jws, id }) => ({ where: String(id), jws })),
    { keys },
  );
  expect(findings).toEqual([]);
});
