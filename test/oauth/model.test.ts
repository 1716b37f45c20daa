import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { findToken } from '../../src/db/tables/tokens.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { UnsavedTokenPairs } from '../../src/oauth/unsaved-token-pairs.js';
import { alter, authorizeElsewhere, newCompany, type OauthRoom, oauthRoom, storedRefreshToken, trustTokens } from './fixture.js';
import { readStates } from './states-document.js';
import { oauthSuite } from './suite.js';

/** Random sequences; the seed is fixed, so that a failure comes again, unless a campaign names one. */
const SEQUENCES = Number(process.env.CAMPAIGN_ROUNDS ?? 30);
const SEED = Number(process.env.FIRST_SEED ?? 20_261_120);

const { database, server } = await oauthSuite();

const NEXT = new Map(readStates().transitions.map(({ from, event, to }) => [`${from} ${event}`, to]));
const DAY = 86_400;
const NO_LEASE = -Infinity;
/** What the tests' settings make of a lifetime of 1,799 s, of a first failure and of a lease; in seconds. */
const [REFRESH_AFTER, LEASE] = [1_000, 30];

/** Seconds until the next attempt, after errors without an explanation and after lost answers in a row. */
const [UNEXPLAINED, LOST] = [
  [10, 60, 300, 1_800, 3_600],
  [60, 300, 1_800, 3_600],
];

/** What becomes of a refresh token that is sent. A crash and a lost answer differ in what is written down afterwards. */
const FATES = [
  'answered',
  'failed',
  'unexplained',
  'lost',
  'lost granted',
  'crash unsent',
  'crash ungranted',
  'crash granted',
] as const;
type Fate = (typeof FATES)[number];

/** What an observer expects who knows docs/states.md and what the provider does, but no code of ours. Times in seconds from now. */
class Model {
  state = 'active';
  paused = false;
  /** The provider has ended the grant, or used up the token that is stored. */
  dead = false;
  putOffs = 0;
  failures = 0;
  expiresIn = 1_799;
  dueIn = REFRESH_AFTER;
  leaseFor = NO_LEASE;

  /** The table says what becomes of the state. */
  follow(event: string): void {
    const to = NEXT.get(`${this.state} ${event}`);
    if (to === undefined) throw new Error(`docs/states.md does not say what "${event}" does to "${this.state}"`);
    if (event === 'paused') this.paused = true;
    if (event === 'resumed' && this.state !== 'reauthorization_required') this.paused = false;
    this.state = to === 'active' && this.paused ? 'paused' : to;
  }

  get isOver(): boolean {
    return this.state === 'reauthorization_required';
  }

  get isDue(): boolean {
    return this.dueIn <= 0 || (this.failures > 0 && this.dueIn > 3_600);
  }

  get isUsable(): boolean {
    return this.expiresIn > 5;
  }

  /** A refresh is asked for; gives how many requests the provider sees of it. */
  attempt(fate: Fate): number {
    if (this.failures > 0 && !this.isDue) return 0;
    if (this.leaseFor > 0) {
      this.leaseFor = Math.min(this.leaseFor, LEASE);
      return 0;
    }
    if (fate.startsWith('crash')) {
      this.leaseFor = LEASE;
      if (fate === 'crash granted') this.dead = true;
      return fate === 'crash unsent' ? 0 : 1;
    }
    this.leaseFor = NO_LEASE;
    if (fate === 'answered') this.#answered();
    else if (fate === 'failed') this.#putOff(4);
    else if (fate === 'unexplained') this.#putOff(UNEXPLAINED[Math.min(this.putOffs++, 4)]!);
    else {
      if (fate === 'lost granted') this.dead = true;
      this.#putOff(LOST[Math.min(this.putOffs++, 3)]!);
    }
    return 1;
  }

  authorized(): void {
    this.dead = false;
    this.#granted();
    this.leaseFor = NO_LEASE;
  }

  #answered(): void {
    if (this.dead) this.follow('refused');
    else this.#granted();
  }

  #granted(): void {
    [this.putOffs, this.failures, this.expiresIn, this.dueIn] = [0, 0, 1_799, REFRESH_AFTER];
  }

  #putOff(seconds: number): void {
    this.failures += 1;
    this.dueIn = seconds;
  }
}

interface Real {
  readonly company: CompanyKey;
  readonly room: OauthRoom;
  /** When the last command had ended, by the database's clock. */
  endedAt?: string;
}

/** All times of the company's token are so much later. */
async function shift(company: CompanyKey, interval: string): Promise<void> {
  const columns = ['expires_at', 'refreshed_at', 'refresh_at', 'lease_until', 'attempt_started_at'];
  await alter(database.db, company, columns.map((name) => `${name} = ${name} + (${interval})`).join(', '));
}

type Command = fc.AsyncCommand<Model, Real>;

/** A command that may come at any time, after which the company stands where the model says. */
function command(name: string, run: (model: Model, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    run: async (model, real) => {
      // Between two commands time stands still, so that on a slow machine nothing comes due by itself.
      if (real.endedAt) await shift(real.company, `now() - '${real.endedAt}'::timestamptz`);
      // It is one company of many, whose refreshes tell nothing of this one's.
      await trustTokens(database.db);
      await run(model, real);
      const found = await real.room.connections.find(real.company);
      expect(found?.status).toBe(model.state);
      expect(found?.reauthorizationReason === null).toBe(!model.isOver);
      const due = await real.room.manager.due(10);
      expect(due).toHaveLength(model.dueIn <= 0 && model.leaseFor <= 0 && !model.isOver ? 1 : 0);
      const { rows } = await database.db.pool.query<{ now: string }>('SELECT now()::text AS now');
      real.endedAt = rows[0]!.now;
    },
    toString: () => name,
  };
}

/** A process of its own, which dies when its request has this fate. */
function managerWith(fate: Fate, { room }: Real): AccessTokenManager {
  let dead = false;
  const db = {
    ...database.db,
    prisma: new Proxy(database.db.prisma, {
      get: (target, name) => {
        if (dead) throw new TypeError('killed');
        return Reflect.get(target, name) as unknown;
      },
    }),
  };
  const endpoint = {
    refresh: (token: Secret) => {
      if (fate === 'failed') server.misdeeds.push({ kind: 'answer', status: 503 });
      else if (fate === 'unexplained') server.misdeeds.push({ kind: 'answer', status: 400, body: { error: 'access_denied' } });
      else if (fate !== 'answered') server.misdeeds.push({ kind: 'drop', rotate: fate.endsWith(' granted') });
      dead = fate.startsWith('crash');
      if (fate !== 'crash unsent') return room.endpoint.refresh(token);
      server.misdeeds.length = 0;
      throw new TypeError('killed');
    },
  };
  let waited = 0;
  return new AccessTokenManager({
    ...room.deps,
    db,
    endpoints: { test: endpoint as unknown as typeof room.endpoint },
    // A process that died offers nothing any more.
    received: new UnsavedTokenPairs(room.deps.logger, { retries: 1, pauseMs: 2 ** 31 - 1 }),
    // Waits for a lease take no time.
    clock: {
      now: () => Date.now(),
      monotonic: () => performance.now() + waited,
      sleep: async (ms) => void (waited += ms * 200),
    },
  });
}

/** Requests that the provider got meanwhile. */
async function requestsDuring(work: Promise<unknown>): Promise<number> {
  const before = server.received.length;
  await work.catch(() => {});
  return server.received.length - before;
}

const commands = {
  use: (fate: Fate) =>
    command(`use a token (${fate})`, async (model, real) => {
      const sent = await requestsDuring(managerWith(fate, real).sourceFor(real.company).get());
      expect(sent).toBe(model.isOver || (model.isUsable && !model.isDue) ? 0 : model.attempt(fate));
    }),
  sweep: (fate: Fate) =>
    command(`sweep (${fate})`, async (model, real) => {
      const manager = managerWith(fate, real);
      const sent = await requestsDuring(
        (async () => {
          for (const company of await manager.due(10)) await manager.refresh(company);
        })(),
      );
      expect(sent).toBe(model.isOver || model.dueIn > 0 || model.leaseFor > 0 ? 0 : model.attempt(fate));
    }),
  unauthorized: (fate: Fate) =>
    command(`401 (${fate})`, async (model, real) => {
      const { vault, deps } = real.room;
      const stale = vault.openAccess(await findToken(deps.db.prisma, real.company));
      const sent = await requestsDuring(managerWith(fate, real).sourceFor(real.company).renew(stale));
      expect(sent).toBe(model.isOver ? 0 : model.attempt(fate));
    }),
  expire: () =>
    command('the token expires', async (model, { company }) => {
      await alter(
        database.db,
        company,
        "expires_at = now() - interval '1 s', refresh_at = now() - interval '1 s', lease_until = NULL",
      );
      [model.expiresIn, model.dueIn, model.leaseFor] = [-1, -1, NO_LEASE];
    }),
  jump: (days: number) =>
    command(`the clock jumps by ${days} d`, async (model, { company }) => {
      await shift(company, `interval '${-days} d'`);
      model.expiresIn -= days * DAY;
      model.dueIn -= days * DAY;
      model.leaseFor -= days * DAY;
    }),
  revoke: () =>
    command('the provider revokes', async (model, { company, room }) => {
      server.revoke(await storedRefreshToken(room, company));
      model.dead = true;
    }),
  authorize: () =>
    command('authorized (again)', async (model, { company, room }) => {
      const refreshToken = new Secret(server.issue(company.companyId));
      const sent = await requestsDuring(room.onboarding.onboard({ ...company, refreshToken }));
      expect(sent).toBe(model.isOver ? 1 : 0);
      if (model.isOver) model.authorized();
      model.follow('onboarded');
    }),
  pause: () =>
    command('paused', async (model, { company, room }) => {
      await room.connections.pause(company);
      model.follow('paused');
    }),
  resume: () =>
    command('resumed', async (model, { company, room }) => {
      await room.connections.resume(company).catch(() => {});
      model.follow('resumed');
    }),
  late: () =>
    command('an answer that was given up comes', async (model, { company, room }) => {
      const found = await room.connections.find(company);
      await inTransaction(database.db, (tx) => room.connections.regain(company, tx));
      if (found?.reauthorizationReason !== 'refresh_outcome_unknown') return;
      // With the pair that it brought.
      await authorizeElsewhere(room, server, company, REFRESH_AFTER);
      model.follow('regained');
      model.authorized();
    }),
};

const fate = fc.constantFrom(...FATES);
const anyCommand = fc.oneof(
  { weight: 4, arbitrary: fate.map(commands.use) },
  { weight: 3, arbitrary: fate.map(commands.sweep) },
  { weight: 2, arbitrary: fate.map(commands.unauthorized) },
  { weight: 6, arbitrary: fc.constant(commands.expire()) },
  { weight: 2, arbitrary: fc.constantFrom(-1, 1).map(commands.jump) },
  { weight: 1, arbitrary: fc.constant(commands.revoke()) },
  { weight: 2, arbitrary: fc.constant(commands.authorize()) },
  { weight: 1, arbitrary: fc.constant(commands.pause()) },
  { weight: 1, arbitrary: fc.constant(commands.resume()) },
  { weight: 1, arbitrary: fc.constant(commands.late()) },
);

test('no sequence of refreshes, crashes, losses, revocations, authorizations and clock jumps breaks the state table', async () => {
  const report = await fc.check(
    fc.asyncProperty(fc.commands([anyCommand], { maxCommands: 30, size: 'max' }), async (sequence) => {
      await fc.asyncModelRun(async () => {
        await database.db.pool.query('DELETE FROM muster.connections');
        server.misdeeds.length = 0;
        const plain = oauthRoom(database.db, server);
        // Slow retries, so that a slow machine does not make one due.
        const room = { ...plain, deps: { ...plain.deps, random: () => 3 } };
        const company = newCompany();
        await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
        return { model: new Model(), real: { company, room } };
      }, sequence);
    }),
    { numRuns: SEQUENCES, seed: SEED },
  );
  expect(report.failed, fc.defaultReportMessage(report)).toBe(false);
}, 600_000);
