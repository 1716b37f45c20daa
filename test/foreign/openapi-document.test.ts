import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createConfig, lint } from '@redocly/openapi-core';
import openapiTS, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';

// What programs of others make of the document of the admin API: a linter, and a generator of clients whose work drives Muster.

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** The compiled `client/journey.ts`, of which this file cannot know the types: they are made while it runs. */
interface Client {
  travel(
    given: object,
  ): Promise<{ readonly held: { readonly id: string }; readonly changes: readonly { readonly op: string }[] }>;
}

/** Beside the packages that the compiled client imports. */
const MADE = here('node_modules/.muster-client');

let deployment: Deployment;
let document: object;

beforeAll(async () => {
  deployment = await Deployment.open();
  await Promise.all([deployment.startApi(), deployment.startWorker()]);
  document = (await (await deployment.fetch('/api/openapi.json')).json()) as object;
  rmSync(MADE, { recursive: true, force: true });
  mkdirSync(MADE);
  writeFileSync(`${MADE}/openapi.json`, JSON.stringify(document));
});
afterAll(() => deployment.close());

test('Redocly has nothing to say about it', async () => {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lint({ ref: `${MADE}/openapi.json`, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});

test('a client that openapi-typescript makes of it onboards a company, syncs it and decides a hold', async () => {
  writeFileSync(`${MADE}/api.d.ts`, astToString(await openapiTS(document)));
  cpSync(here('client/journey.ts'), `${MADE}/journey.ts`);
  writeFileSync(`${MADE}/package.json`, JSON.stringify({ type: 'module' }));
  const options = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noUnusedLocals: true };
  const target = { target: 'ES2023', module: 'NodeNext', lib: ['ES2023', 'DOM'], types: [], skipLibCheck: false };
  writeFileSync(
    `${MADE}/tsconfig.json`,
    JSON.stringify({ compilerOptions: { ...options, ...target, outDir: 'out' }, include: ['*.ts'], exclude: [] }),
  );
  const compiled = spawnSync(process.execPath, [here('../../node_modules/.bin/tsc'), '-p', MADE], { encoding: 'utf8' });
  expect([compiled.stdout, compiled.stderr, compiled.status]).toEqual(['', '', 0]);

  const { travel } = (await import(pathToFileURL(`${MADE}/out/journey.js`).href)) as Client;
  const { sandbox, url, adminToken: token } = deployment;
  const { companyId } = sandbox.companies[3]!;
  const refreshToken = sandbox.issueRefreshToken(companyId).reveal();
  const lose = () => sandbox.list(companyId, 'employees').remove(0, 1_000);
  const journey = await travel({ url, token, companyId, refreshToken, lose });
  expect(journey).toMatchObject({
    onboarded: { environment: 'test', status: 'active' },
    again: 'already_onboarded',
    first: { trigger: 'onboarding', status: 'succeeded' },
    second: { trigger: 'manual', mode: 'full', status: 'succeeded' },
    held: { resource: 'employees', count: 1_000, living: 1_234, status: 'open' },
    approved: { id: journey.held.id, status: 'approved' },
  });
  const ops = journey.changes.map(({ op }) => op);
  expect([ops.filter((op) => op === 'insert').length, ops.filter((op) => op === 'delete').length]).toEqual([1_234, 1_000]);
});
