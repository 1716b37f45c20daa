import { Agent, get } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { testDatabase } from '../support/database.js';
import { type StatementTap, tapStatements } from '../support/statement-tap.js';
import { waitFor } from '../support/wait-for.js';

/** As many as one process follows at once. */
const WATCHERS = 1_000;
/** A process reads the runs that are watched no sooner than so long after the last time. */
const READ_MS = 500;
const SPAN_MS = 5_000;
/** Connections that are opened at once. */
const AT_ONCE = 100;

let deployment: Deployment;
let tap: StatementTap;
let stop: (() => Promise<void>) | undefined;
let run: string;

beforeAll(async () => {
  const database = await testDatabase();
  tap = await tapStatements(database.url);
  deployment = await Deployment.open({ database, env: { DATABASE_URL: tap.url } });
  const api = await deployment.startApi();
  stop = async () => {
    api.kill('SIGTERM');
    await api.exit;
    await tap.close();
    await deployment.close();
  };
  const { prisma } = database.db;
  const company = { environment: 'test', companyId: '00000000-0000-4000-8000-0000000000f1' };
  await prisma.connection.create({ data: company });
  const made = { ...company, trigger: 'manual', mode: 'full', status: 'running', startedAt: new Date() };
  const walk = { environment: 'test', companyId: company.companyId, resource: 'employees', position: 0, status: 'running' };
  run = (await prisma.run.create({ data: { ...made, walks: { create: walk } } })).id;
});
afterAll(() => stop?.());

interface Watcher {
  /** The states of the run that it was told of so far. */
  readonly told: readonly string[];
  readonly ended: Promise<void>;
}

/** Opens a stream of the run's events; resolves with the first event. */
function watch(agent: Agent): Promise<Watcher> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${deployment.adminToken}` };
    const request = get(`${deployment.url}/api/runs/${run}/events`, { agent, headers }, (response) => {
      const told: string[] = [];
      const ended = new Promise<void>((end) => response.once('close', end));
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const events = (text + chunk).split('\n\n');
        text = events.pop()!;
        for (const event of events)
          if (event.startsWith('event: run')) told.push((JSON.parse(event.split('\ndata: ')[1]!) as { status: string }).status);
        resolve({ told, ended });
      });
      response.once('close', () => reject(new Error(`A stream was answered ${response.statusCode}, and ended with nothing.`)));
    });
    request.once('error', reject);
  });
}

/** From now on. What was sent before has been read: a turn that took long leaves much behind. */
async function begin(): Promise<{ before: number; began: number }> {
  await nextTurn();
  await nextTurn();
  return { before: tap.statements.length, began: performance.now() };
}

/** What the process asked of the database in some seconds, and how often it can have read the watched runs in that time. */
async function load(): Promise<{ texts: string[]; readings: number }> {
  const { before, began } = await begin();
  await sleep(SPAN_MS);
  const texts = tap.statements.slice(before).map(({ text }) => text);
  return { texts, readings: Math.ceil((performance.now() - began) / READ_MS) + 1 };
}

test('a thousand who watch a run ask no more of the database than one, and each sees its end', async () => {
  const idle = new Set((await load()).texts);
  const agent = new Agent({ maxSockets: Infinity });
  const watchers = [await watch(agent)];
  const one = await load();
  const reading = new Set(one.texts.filter((text) => !idle.has(text)));
  expect(reading.size).toBeGreaterThan(0);

  const { before, began } = await begin();
  while (watchers.length < WATCHERS)
    watchers.push(
      ...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, WATCHERS - watchers.length) }, () => watch(agent)))),
    );
  // To join costs nothing of the database either.
  const joining = tap.statements.slice(before).filter(({ text }) => !idle.has(text));
  expect(joining.length).toBeLessThanOrEqual(reading.size * (Math.ceil((performance.now() - began) / READ_MS) + 1));
  const all = await load();
  const asked = all.texts.filter((text) => !idle.has(text));
  expect(asked).not.toEqual([]);
  expect(asked.length).toBeLessThanOrEqual(reading.size * all.readings);

  await deployment.database.db.prisma.run.update({ where: { id: run }, data: { status: 'succeeded', finishedAt: new Date() } });
  await Promise.all(watchers.map(({ ended }) => ended));
  expect(watchers.filter(({ told }) => told.join() !== 'running,succeeded')).toEqual([]);
  // Nobody watches any more, and nothing is read.
  const rest = async () => (await load()).texts.every((text) => !reading.has(text));
  await waitFor(rest);
  agent.destroy();
});
