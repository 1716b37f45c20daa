import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../../src/api/runs/run-model.js';
import { progressOf } from '../../../src/cli/operate/watch-run.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { waitFor } from '../../support/wait-for.js';
import { MUSTER, onTerminal } from '../run-muster.js';

let admin: AdminFixture;
let company: CompanyKey;
beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

const run = (walks: object[], more: object = {}) => ({ status: 'running', walks, ...more }) as unknown as RunModel;

test('progress names the list that is read, its records of the total, and the time left', () => {
  const walks = [
    { resource: 'departments', status: 'succeeded', received: 1_250, total_records: null },
    { resource: 'employees', status: 'running', received: 6_346, total_records: 20_000 },
  ];
  expect(progressOf(run(walks, { estimated_seconds_left: 130 }))).toEqual({
    texts: ['employees 6,346 of 20,000 records', 'about 3 min left', '1 of 2 lists done'],
    share: 7_596 / 21_250,
  });
  const unknown = run([{ resource: 'employees', status: 'running', received: 12, total_records: null }, walks[0]!]);
  expect(progressOf(unknown)).toEqual({ texts: ['employees 12 records', '1 of 2 lists done'], share: undefined });
  expect(progressOf(run([], { status: 'queued' })).texts).toEqual(['waits for a worker']);
  expect(progressOf(run([], { status: 'queued', retry_at: '2026-01-02T03:04:05.000Z' })).texts).toEqual([
    'waits to retry at 2026-01-02 03:04:05Z',
  ]);
});

const waiting = ['sync', '--environment', 'test', '--wait', '--company'];
const queued = () => waitFor(() => admin.db.prisma.run.findFirst({ where: { ...company, status: 'queued' } }));

async function endRun(status: string): Promise<string> {
  const { id } = await queued();
  await admin.db.prisma.walk.updateMany({ where: { runId: id }, data: { status, verified: true, proof: 'join' } });
  await admin.db.prisma.run.update({ where: { id }, data: { status, finishedAt: new Date() } });
  return id;
}

test('^C ends the waiting alone, and says so', async () => {
  const child = spawn(process.execPath, [MUSTER, ...waiting, company.companyId, '--url', admin.url], {
    env: { PATH: process.env.PATH, MUSTER_ADMIN_TOKEN: TOKEN },
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const [stderr] = [text(child.stderr), once(child.stderr, 'data').then(() => child.kill('SIGINT'))];
  expect(await ended).toBe(1);
  const { id } = await queued();
  expect(await stderr).toBe(
    `Waiting for run ${id}; ^C ends only the waiting.\nmuster: Waiting was ended, and the run goes on: \`muster runs show ${id}\` shows it, \`muster runs cancel ${id}\` ends it.\n`,
  );
  expect(await queued()).toMatchObject({ id });
  await endRun('succeeded');
});

test('a terminal shows one line while the run goes on, and then the run', async () => {
  const command = `stty cols 80; MUSTER_ADMIN_TOKEN=${TOKEN} ${process.execPath} ${MUSTER} ${waiting.join(' ')} ${company.companyId} --url ${admin.url}`;
  const [shown, id] = await Promise.all([onTerminal(command), endRun('succeeded')]);
  expect(shown).toMatch(/(?:Company \w{4}|Syncing) {2}waits for a worker\r/);
  expect(shown).toContain(id);
  expect(shown).toMatch(/employees +.*succeeded/);
});
