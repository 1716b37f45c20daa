import { randomUUID } from 'node:crypto';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';
import { companyIdOf } from './company-ids.js';

/** How the newest walks of a list ended: proved, failed, or read to the end without a proof. */
type Ending =
  | { readonly proof: 'join' }
  | { readonly code: string; readonly says?: string }
  | { readonly unverified: string; readonly says?: string; readonly rejected?: number };

interface ListTrouble {
  /** Null: it was never proved. */
  readonly provedHoursAgo: number | null;
  readonly begunHoursAgo?: number;
  /** Of its newest walk, and as many nights before as the company says. Absent: no walk has ended. */
  readonly ends?: Ending;
  readonly unavailableHours?: number;
  readonly holds?: readonly ('share' | 'grant')[];
}

interface Trouble {
  readonly companies: number;
  readonly paused?: true;
  readonly reauthorizationReason?: string;
  readonly onboardedHoursAgo?: number;
  /** The newest walks ended so long ago. */
  readonly endedHoursAgo?: number;
  /** So many nights in a row ended alike. */
  readonly nights?: number;
  /** The run that has not ended. */
  readonly run?: 'queued' | 'running';
  /** The last refreshes were refused with this error. */
  readonly refreshRefused?: string;
  /** Null: it was never requested. */
  readonly employees?: ListTrouble | null;
  readonly departments?: ListTrouble | null;
  /** A list that has left the catalogue. */
  readonly leftList?: true;
}

const PROVED: ListTrouble = { provedHoursAgo: 3, ends: { proof: 'join' } };
const REFUSED = { code: 'service_refused', says: 'Your plan does not include this list.' } as const;

/** Every kind of trouble, and how many of 300 companies have it. */
export const TROUBLES = {
  well: { companies: 148 },
  paused: { companies: 8, paused: true, endedHoursAgo: 100, employees: { ...PROVED, provedHoursAgo: 100 } },
  pausedUnproved: { companies: 2, paused: true, endedHoursAgo: 90, employees: { provedHoursAgo: null, begunHoursAgo: 90 } },
  mustAuthorize: {
    companies: 12,
    reauthorizationReason: 'token_refused',
    endedHoursAgo: 60,
    employees: { provedHoursAgo: 84, ends: { code: 'reauthorization_required' } },
    departments: { provedHoursAgo: 84, ends: { code: 'reauthorization_required' } },
  },
  pausedMustAuthorize: {
    companies: 2,
    paused: true,
    reauthorizationReason: 'token_refused',
    endedHoursAgo: 60,
    employees: { provedHoursAgo: 84, ends: { code: 'reauthorization_required' } },
  },
  failedForDays: { companies: 20, nights: 4, employees: { provedHoursAgo: 99, ends: REFUSED } },
  failedOnce: { companies: 10, departments: { provedHoursAgo: 20, ends: { code: 'service_unreachable' } } },
  failedFirst: {
    companies: 3,
    nights: 3,
    employees: { provedHoursAgo: null, begunHoursAgo: 80, ends: { code: 'malformed_envelope' } },
  },
  held: { companies: 8, employees: { ...PROVED, holds: ['share'] } },
  heldForGrant: {
    companies: 4,
    employees: { ...PROVED, holds: ['grant'] },
    departments: { ...PROVED, holds: ['grant', 'share'] },
  },
  heldAndFailed: { companies: 2, employees: { provedHoursAgo: 20, ends: REFUSED, holds: ['share'] } },
  heldAndLate: { companies: 2, endedHoursAgo: 50, employees: { ...PROVED, provedHoursAgo: 50, holds: ['share'] } },
  reading: {
    companies: 4,
    onboardedHoursAgo: 1,
    run: 'running',
    employees: { provedHoursAgo: null, begunHoursAgo: 1 },
    departments: null,
  },
  waiting: { companies: 4, onboardedHoursAgo: 1, run: 'queued', employees: null, departments: null },
  neverProved: {
    companies: 10,
    nights: 3,
    employees: { provedHoursAgo: null, begunHoursAgo: 80, ends: { unverified: 'total_mismatch' } },
  },
  newList: { companies: 10, departments: null },
  late: { companies: 12, nights: 3, employees: { provedHoursAgo: 99, ends: { unverified: 'end_unproved' } } },
  unread: {
    companies: 6,
    endedHoursAgo: 60,
    employees: { ...PROVED, provedHoursAgo: 60 },
    departments: { ...PROVED, provedHoursAgo: 60 },
  },
  unavailable: {
    companies: 10,
    nights: 4,
    departments: {
      provedHoursAgo: null,
      unavailableHours: 75,
      ends: { unverified: 'unavailable', says: 'The company has no departments.' },
    },
  },
  unavailableAgain: {
    companies: 2,
    departments: {
      provedHoursAgo: 200,
      unavailableHours: 75,
      ends: { unverified: 'unavailable', says: 'Gone since the last plan.' },
    },
  },
  unverified: { companies: 6, employees: { provedHoursAgo: 20, ends: { unverified: 'passes_disagree' } } },
  rejected: { companies: 7, employees: { provedHoursAgo: 20, ends: { unverified: 'rejected_records', rejected: 12 } } },
  rejectsAll: {
    companies: 2,
    employees: { provedHoursAgo: null, begunHoursAgo: 3, ends: { unverified: 'rejected_records', rejected: 5 } },
  },
  refreshRefused: { companies: 4, refreshRefused: 'access_denied' },
  leftList: { companies: 2, leftList: true },
} as const satisfies Readonly<Record<string, Trouble>>;
export type TroubleName = keyof typeof TROUBLES;

const HOUR_MS = 3_600_000;
const WORDS = ['Nordlys', 'Fjell', 'Havgård', 'Strand', 'Ekdal', 'Sølberg', 'Brattli', 'Vestby'];
const TRADES = ['Fiskeri', 'Regnskap', 'Bygg', 'Sjømat', 'Transport', 'Helse', 'Handel'];
/** Living rows of a list that was ever read. */
const RECORDS = { employees: 3, departments: 2, shifts: 1 };

/**
 * Fills an empty database with 300 companies of every kind of trouble, as nights of real walks would leave them: connections with tokens, lists, ended runs
 * and walks, holds, rejected records and mirrored rows. There are no changes, barriers and certificates, and no issues before a sweep. A third is
 * of `production`. Returns the companies by their trouble. `tokenOf` seals the tokens for processes that read them.
 */
export async function troubledFleet(
  { prisma }: Pick<Database, 'prisma'>,
  { tokenOf = () => 'sealed' }: { readonly tokenOf?: (company: CompanyKey) => string } = {},
): Promise<Readonly<Record<TroubleName, readonly CompanyKey[]>>> {
  const fleet = new Fleet();
  const companies = Object.entries(TROUBLES as Readonly<Record<string, Trouble>>).map(
    ([name, trouble]) => [name, Array.from({ length: trouble.companies }, () => fleet.add(trouble, tokenOf))] as const,
  );
  const { rows } = fleet;
  await prisma.connection.createMany({ data: rows.connections });
  await prisma.token.createMany({ data: rows.tokens });
  await prisma.company.createMany({ data: rows.companies });
  await prisma.list.createMany({ data: rows.lists });
  await prisma.run.createMany({ data: rows.runs.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime()) });
  await prisma.walk.createMany({ data: rows.walks });
  await prisma.hold.createMany({ data: rows.holds });
  await prisma.rejectedRecord.createMany({ data: rows.rejected });
  await prisma.employee.createMany({ data: rows.employees });
  await prisma.department.createMany({ data: rows.departments });
  return Object.fromEntries(companies) as unknown as Record<TroubleName, CompanyKey[]>;
}

type Create<Table extends 'connection' | 'token' | 'company' | 'list' | 'run' | 'walk' | 'hold' | 'rejectedRecord' | 'employee'> =
  Extract<NonNullable<Parameters<Database['prisma'][Table]['createMany']>[0]>['data'], readonly unknown[]>[number];

class Fleet {
  readonly rows = {
    connections: [] as Create<'connection'>[],
    tokens: [] as Create<'token'>[],
    companies: [] as Create<'company'>[],
    lists: [] as Create<'list'>[],
    runs: [] as (Create<'run'> & { createdAt: Date })[],
    walks: [] as Create<'walk'>[],
    holds: [] as Create<'hold'>[],
    rejected: [] as Create<'rejectedRecord'>[],
    employees: [] as Create<'employee'>[],
    departments: [] as Create<'employee'>[],
  };
  readonly #now = Date.now();
  #count = 0;

  add(trouble: Trouble, tokenOf: (company: CompanyKey) => string): CompanyKey {
    const n = ++this.#count;
    const environment: Environment = n % 3 === 0 ? 'production' : 'test';
    const company = { environment, companyId: companyIdOf(n) };
    const { paused = false, reauthorizationReason = null, onboardedHoursAgo = 1_000, refreshRefused } = trouble;
    const createdAt = this.#hoursAgo(onboardedHoursAgo);
    const nextSyncAt = paused || reauthorizationReason !== null ? null : this.#hoursAgo(-12);
    this.rows.connections.push({ ...company, paused, reauthorizationReason, createdAt, authorizedAt: createdAt, nextSyncAt });
    this.rows.tokens.push({
      ...company,
      accessToken: tokenOf(company),
      refreshToken: tokenOf(company),
      expiresAt: this.#hoursAgo(refreshRefused ? 2 : -1),
      refreshedAt: this.#hoursAgo(refreshRefused ? 3 : 1),
      refreshAt: this.#hoursAgo(-0.8),
      ...(refreshRefused && {
        transientFailures: 4,
        putOffs: 4,
        lastFailure: 'service_refused',
        lastStatus: 400,
        lastError: refreshRefused,
      }),
    });
    this.rows.companies.push({ ...company, name: `${WORDS[n % WORDS.length]} ${TRADES[n % TRADES.length]} ${n} AS` });
    this.#addWork(company, trouble);
    return company;
  }

  #addWork(company: CompanyKey, trouble: Trouble): void {
    const { endedHoursAgo = 3, nights = 1, run } = trouble;
    const lists = { employees: PROVED, departments: PROVED, ...trouble };
    const asked = (['departments', 'employees'] as const).flatMap((resource) => {
      const list = lists[resource];
      return list ? [{ resource, list }] : [];
    });
    for (let night = nights - 1; night >= 0; night--) {
      const runId = randomUUID();
      const hours = endedHoursAgo + 24 * night;
      const ended = asked.filter(({ list }) => list.ends);
      if (ended.length > 0) this.#addRun(company, runId, hours, ended);
      ended.forEach(({ resource, list }, position) =>
        this.#addWalk(company, { runId, position, resource, list, hours, isNewest: night === 0 }),
      );
    }
    for (const { resource, list } of asked) if (!list.ends) this.#addList(company, { resource, list, runId: null, walkId: null });
    if (trouble.leftList)
      this.#addList(company, { resource: 'shifts', list: { provedHoursAgo: 900 }, runId: null, walkId: null });
    if (run) this.#addUnfinishedRun(company, run);
  }

  #addRun(company: CompanyKey, id: string, hours: number, asked: readonly { readonly list: ListTrouble }[]): void {
    const error = asked.map(({ list }) => errorOf(list.ends!)).find((found) => found !== undefined);
    this.rows.runs.push({
      ...company,
      id,
      trigger: 'nightly',
      mode: 'full',
      status: error ? 'failed' : 'succeeded',
      attempts: error ? 1 : 0,
      ...(error && { error }),
      createdAt: this.#hoursAgo(hours + 0.2),
      startedAt: this.#hoursAgo(hours + 0.1),
      finishedAt: this.#hoursAgo(hours),
    });
  }

  #addUnfinishedRun(company: CompanyKey, status: 'queued' | 'running'): void {
    const isRunning = status === 'running';
    const id = randomUUID();
    const began = isRunning ? this.#hoursAgo(0.01) : null;
    const startAfter = this.#hoursAgo(0.02);
    this.rows.runs.push({
      ...company,
      id,
      trigger: 'onboarding',
      mode: 'resume',
      status,
      createdAt: startAfter,
      startAfter,
      startedAt: began,
      heartbeatAt: began,
      ...(isRunning && { holder: 'a worker', epoch: 1n }),
    });
    (['departments', 'employees'] as const).forEach((resource, position) =>
      this.rows.walks.push({ ...company, runId: id, position, resource, status, startedAt: began }),
    );
  }

  #addWalk(
    company: CompanyKey,
    walk: {
      runId: string;
      position: number;
      resource: 'employees' | 'departments';
      list: ListTrouble;
      hours: number;
      isNewest: boolean;
    },
  ): void {
    const { runId, position, resource, list, hours, isNewest } = walk;
    const ends = list.ends!;
    const id = randomUUID();
    const error = errorOf(ends);
    const isProved = 'proof' in ends;
    const rejected = 'rejected' in ends ? (ends.rejected ?? 0) : 0;
    const isUnavailable = 'unverified' in ends && ends.unverified === 'unavailable';
    const received = error || isUnavailable ? 0 : RECORDS[resource] + rejected;
    this.rows.walks.push({
      ...company,
      id,
      runId,
      position,
      resource,
      status: error ? 'failed' : 'succeeded',
      epoch: 1n,
      verified: isProved,
      proof: isProved ? ends.proof : null,
      unverifiedReason: 'unverified' in ends ? ends.unverified : null,
      serviceSays: 'says' in ends ? (ends.says ?? null) : null,
      ...(error && { error }),
      pages: received > 0 ? 1 : 0,
      received,
      unchanged: received - rejected,
      rejected,
      totalRecords: error ? null : received,
      records: error ? null : RECORDS[resource],
      grantNumber: 1,
      startedAt: this.#hoursAgo(hours + 0.1),
      passStartedAt: this.#hoursAgo(hours + 0.1),
      finishedAt: this.#hoursAgo(hours),
    });
    if (!isNewest) return;
    for (let n = 0; n < rejected; n++)
      this.rows.rejected.push({
        walkId: id,
        pass: 1,
        page: 0,
        position: n,
        reason: 'no_id',
        text: base64(`{"name":"Rejected ${n}","number":${n}}`),
      });
    for (const cause of list.holds ?? []) this.#addHold(company, { resource, cause, runId, walkId: id, hours });
    this.#addList(company, {
      resource,
      list,
      runId,
      walkId: isProved ? id : null,
      hasOnlyRejected: rejected > 0 && list.provedHoursAgo === null,
    });
  }

  #addHold(company: CompanyKey, hold: { resource: string; cause: string; runId: string; walkId: string; hours: number }): void {
    const { hours, ...rest } = hold;
    const ofGrant = hold.cause === 'grant' && { grantNumber: 1, authorizedAt: this.#hoursAgo(30) };
    this.rows.holds.push({
      ...company,
      ...rest,
      count: 2,
      living: 3,
      sample: ['1', '2'],
      openedAt: this.#hoursAgo(hours),
      ...ofGrant,
    });
  }

  #addList(
    company: CompanyKey,
    of: {
      resource: keyof typeof RECORDS;
      list: ListTrouble;
      runId: string | null;
      walkId: string | null;
      hasOnlyRejected?: boolean;
    },
  ): void {
    const { resource, list, runId, walkId, hasOnlyRejected = false } = of;
    const { provedHoursAgo, begunHoursAgo = 990, unavailableHours, ends } = list;
    const isRead =
      !hasOnlyRejected &&
      (provedHoursAgo !== null || (ends !== undefined && 'unverified' in ends && unavailableHours === undefined));
    const isUnverified = ends !== undefined && 'unverified' in ends && ends.unverified !== 'unavailable';
    this.rows.lists.push({
      ...company,
      resource,
      epoch: 1n,
      idField: 'id',
      lastRunId: runId,
      begunAt: this.#hoursAgo(begunHoursAgo),
      lastVerifiedAt: provedHoursAgo === null ? null : this.#hoursAgo(provedHoursAgo + 0.1),
      verifiedWalkId: walkId,
      unverifiedSince: isUnverified ? this.#hoursAgo(3) : null,
      unavailableSince: unavailableHours === undefined ? null : this.#hoursAgo(unavailableHours),
      records: isRead ? RECORDS[resource] : 0,
    });
    if (isRead && resource !== 'shifts')
      for (let n = 1; n <= RECORDS[resource]; n++)
        this.rows[resource].push({ ...company, id: String(n), data: { id: String(n), name: `${resource} ${n}` } });
  }

  #hoursAgo(hours: number): Date {
    return new Date(this.#now - hours * HOUR_MS);
  }
}

function errorOf(ends: Ending): { code: string; message: string } | undefined {
  return 'code' in ends ? { code: ends.code, message: `The list could not be read (${ends.code}).` } : undefined;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
