import { createHash } from 'node:crypto';
import { randomOf } from '../pagers/shifting-list.js';

// A service that is drawn from a seed, with whatever it says besides the truth. It shares nothing with the pagers but the spelling of the requests.

/** What a request asks for. */
export interface Asked {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

interface Row {
  readonly id: string;
  /** Where the record stands, whatever joins or leaves. */
  readonly place: number;
  /** The service leaves it out behind the cut: whoever asks may not see it. */
  readonly isHidden: boolean;
  /** Shown only to requests that carry the constant of the entry. */
  readonly needsConstant: boolean;
}

type Style = 'skip-take' | 'page-number' | 'token' | 'link' | 'link-header' | 'cursor';
const STYLES: readonly Style[] = ['skip-take', 'page-number', 'token', 'link', 'link-header', 'cursor'];

/** What stands around the records and tells of more of them, in the words of as many services. `to` is a link, `n` the number of this page from 1. */
const SIGNS: readonly ((more: boolean, to: string, n: number) => object)[] = [
  (more) => ({ hasMore: more }),
  (more) => ({ paging: { has_more: more ? 'true' : 'false' } }),
  (more) => ({ meta: { isLast: !more } }),
  (more) => ({ page: { isTruncated: more } }),
  (more, to) => ({ _links: { self: { href: '/here' }, ...(more && { next: { href: to } }) } }),
  (more, to) => ({ links: [{ rel: 'self', href: '/here' }, ...(more ? [{ rel: 'next', href: to }] : [])] }),
  (more, to) => ({ nextPageUrl: more ? to : null }),
  (more, to) => ({ pagination: { links: { next: more ? to : '' } } }),
  (more, _to, n) => ({ next_page: more ? n + 1 : null }),
  (more, _to, n) => ({ meta: { current_page: n, last_page: more ? n + 2 : n } }),
  (more, _to, n) => ({ page: n, pages: more ? n + 1 : n }),
  (more) => ({ response_metadata: { next_cursor: more ? 'dGVhbQ==' : '' } }),
];
/** The words by which a service says that it failed, under status 200. */
const DENIALS: readonly object[] = [
  { success: false },
  { isSuccess: false, httpStatusCode: 500 },
  { ok: false },
  { status: 'error', message: 'timeout' },
  { statusCode: '503' },
  { errors: [{ code: 'TIMEOUT' }] },
  { error: { message: 'index is not ready' } },
  { meta: { status: 'failed' } },
];
/** What means nothing. */
const DECOYS: readonly object[] = [
  { nextRun: '2026-12-01T02:00:00Z' },
  { errors: [], error: null, success: true },
  { status: 'ok', statusCode: 200 },
  { nextSyncToken: 'abc', moreInfo: 'https://docs.example.com' },
  { generated: 1764288000, took: 404 },
  { holiday: { next: '2026-12-25' } },
];

/** What costs no proof. */
const HARMLESS = new Set(['transient', 'forgets constants', 'never says more']);

/** One drawn service with its list, and the catalogue entry of whoever mirrors it. */
export class LyingService {
  readonly entry: Record<string, unknown>;
  /** What it does besides telling the truth, for the message of a failure. */
  readonly lies: readonly string[];
  readonly size: number;
  readonly style: Style;
  readonly tellsTotal: boolean;
  readonly #random: (below: number) => number;
  readonly #cap: number;
  #rows: Row[];
  #steadfast: Set<string>;
  /** The night in which a record joined. */
  readonly #joined = new Map<string, number>();
  #night = 0;
  readonly #hides: boolean;
  readonly etags: 'none' | 'honest' | 'frozen' | 'by address' | 'empty';
  readonly #restlessness: number;
  readonly #bare: boolean;
  readonly #sign: ((more: boolean, to: string, n: number) => object) | undefined;
  readonly #signMode: 'honest' | 'always' | 'never';
  readonly #decoy: object;
  readonly #denial: object;
  readonly #denialMode: 'none' | 'transient' | 'persistent' | 'partial';
  /** The page, by what it is asked by, on which the service denies, cuts or forgets; the first one that the draw hits. */
  readonly #troubledPage: number;
  #failures: number;
  readonly #cuts: boolean;
  readonly #strips: boolean;
  readonly #constants: 'none' | 'kept' | 'forgotten' | 'refused';
  readonly #behind: 'empty' | 'repeat' | 400 | 404 | 416;
  readonly #isMisnamed: boolean;
  readonly #ignores: boolean;
  #born = 0;
  #seesLess = false;
  readonly #pagesSeen = new Map<string, number>();

  constructor(seed: number) {
    const random = randomOf(seed * 6_364_136);
    const one = <T>(of: readonly T[]): T => of[random(of.length)]!;
    const chance = (percent: number) => random(100) < percent;
    this.#random = random;
    this.style = one(STYLES);
    const isPositional = this.style === 'skip-take' || this.style === 'page-number';
    const length = random(8) === 0 ? random(3) : random(60);
    this.size = 2 + random(11);
    this.#bare = (isPositional || this.style === 'link-header') && chance(35);
    this.tellsTotal = !this.#bare && chance(40);
    this.#strips = this.style === 'link-header' && chance(25);
    this.#isMisnamed = (this.style === 'token' || this.style === 'link') && chance(20);
    // Where the only witness is how many records the first page has, they must be as many as were asked for.
    this.#cap = this.#strips || this.#isMisnamed || chance(60) ? this.size : 1 + random(this.size);
    this.#constants = this.style === 'link' && chance(40) ? one(['kept', 'forgotten', 'refused'] as const) : 'none';
    this.#sign = !this.#bare && chance(50) ? one(SIGNS) : undefined;
    this.#signMode = chance(70) ? 'honest' : one(['always', 'never'] as const);
    this.#decoy = chance(50) ? one(DECOYS) : {};
    this.#denial = one(DENIALS);
    this.#denialMode = !this.#bare && chance(20) ? one(['transient', 'persistent', 'partial'] as const) : 'none';
    this.#failures = 1 + random(2);
    this.#troubledPage = random(4);
    this.#cuts = this.tellsTotal && chance(15);
    this.#behind = isPositional && !this.tellsTotal ? one(['empty', 'empty', 'repeat', 400, 404, 416] as const) : 'empty';
    const hides = !this.tellsTotal && !this.#strips && !this.#isMisnamed && chance(50);
    // Whose only page is hidden and given for every position would be an empty list to anybody.
    this.#ignores = isPositional && !this.tellsTotal && !hides && chance(6);
    this.#restlessness = hides || this.#cuts ? 0 : one([0, 0, 0, 20, 40]);
    // What nothing around the records tells of is seen only where it is no longer than a page.
    const isTold = this.#sign !== undefined && this.#signMode === 'honest';
    const longest = isPositional ? (isTold ? 2 * this.#cap : this.#cap) : length;
    let gap = 0;
    let sinceGap = longest;
    this.#rows = Array.from({ length }, () => {
      if (gap > 0) gap -= 1;
      else if (hides && sinceGap >= 2 * this.size && chance(15)) [gap, sinceGap] = [1 + random(Math.max(1, longest)), 0];
      else sinceGap += 1;
      return this.#row(gap > 0 && this.style !== 'cursor');
    });
    this.#hides = hides;
    this.#steadfast = new Set(this.#rows.map(({ id }) => id));
    this.etags = (['none', 'honest', 'honest', 'frozen', 'by address', 'empty'] as const)[seed % 6]!;
    this.entry = this.#entry();
    this.lies = [
      hides && 'hides',
      this.#strips && 'strips',
      this.#isMisnamed && 'misnamed',
      this.#cuts && 'cuts',
      this.#ignores && 'ignores the parameters',
      this.#denialMode !== 'none' && this.#denialMode,
      this.#constants === 'forgotten' && 'forgets constants',
      this.#constants === 'refused' && 'refuses constants',
      this.#sign && this.#signMode !== 'honest' && `${this.#signMode} says more`,
      this.#restlessness > 0 && 'moves',
    ].filter((lie) => typeof lie === 'string');
  }

  /** Whether nothing that it does gives a reason to refuse it its proof. */
  get isHonest(): boolean {
    return this.lies.every((lie) => HARMLESS.has(lie));
  }

  /**
   * Whether an honest service may be refused its proof for this: its only page is full, or comes again and again, as that of a list would whose
   * entry is wrong; or its last page comes again, and is full, or has one record as all of them: a limit and a list that is reordered look the same.
   */
  mayBeUnproved(because: string): boolean {
    const comesAgain = this.#behind === 'repeat' && (this.#rows.length <= this.#cap || this.#cap === 1);
    if (this.#behind === 'repeat' && because === 'end_unproved') return this.#rows.length % this.#cap === 0;
    if (comesAgain && ['pager_misdeclared', 'never_ended'].includes(because)) return true;
    return because === 'end_unproved' && this.visible.length === this.size;
  }

  /** The records that were there at every moment, and that whoever asks may see. */
  get visibleThroughout(): string[] {
    return this.#rows.filter(({ id, isHidden }) => !isHidden && this.#steadfast.has(id)).map(({ id }) => id);
  }

  /** Of those, the ones that have been there for so many nights: tags that lie are found by then. */
  visibleFor(nights: number): string[] {
    return this.visibleThroughout.filter((id) => this.#night - (this.#joined.get(id) ?? 0) >= nights);
  }

  /** The list changes, and a night begins. Hidden records keep their distance. */
  nextNight(): void {
    this.#night += 1;
    for (let changes = this.#random(4); changes > 0; changes -= 1) this.#change(this.#hides);
    this.#steadfast = new Set(this.#rows.map(({ id }) => id));
  }

  /** Another person is asked for, who may not see the end of the list. Returns the records that are out of sight from now on. */
  showLess(): string[] {
    this.#seesLess = true;
    const from = Math.floor(this.#rows.length * 0.7);
    const gone = this.#rows.slice(from).filter(({ isHidden }) => !isHidden);
    this.#rows = this.#rows.map((row, n) => (n < from ? row : { ...row, isHidden: true }));
    return gone.map(({ id }) => id);
  }

  /** The ETag of an answer; undefined where the service gives none. */
  tagOf(address: string, body: string): string | undefined {
    switch (this.etags) {
      case 'none':
        return undefined;
      case 'honest':
        return `"${createHash('sha256').update(body).digest('base64url')}"`;
      case 'by address':
        return `"${createHash('sha256').update(address).digest('base64url')}"`;
      case 'frozen':
        return '"v1"';
      case 'empty':
        return '""';
    }
  }

  get visible(): string[] {
    return this.#rows.filter(({ isHidden }) => !isHidden).map(({ id }) => id);
  }

  answer({ path, query }: Asked): Answered {
    while (this.#random(100) < this.#restlessness) this.#change();
    const link = path.startsWith('/next') ? new URL(path, 'http://service') : undefined;
    const asked = { ...query, ...Object.fromEntries(link?.searchParams ?? []) };
    if (this.#constants === 'refused' && link && query['all'] !== undefined) return { status: 400, headers: {}, body: {} };
    const { start, rows, n, to } = this.#cut(asked);
    const isWhole = this.#constants === 'none' || this.#constants === 'kept' || asked['all'] !== undefined;
    let records = rows
      .filter(({ isHidden, needsConstant }) => !isHidden && (isWhole || !needsConstant))
      .map(({ id }) => ({ id }));
    const isBehind = start >= this.#rows.length && start > 0;
    if (isBehind && typeof this.#behind === 'number')
      return { status: this.#behind, headers: {}, body: { message: 'no such page' } };
    if (isBehind && this.#behind === 'repeat')
      records = this.#rows
        .filter(({ isHidden }) => !isHidden)
        .slice(-this.#cap)
        .map(({ id }) => ({ id }));
    const isTroubled = this.#pageOf(String(asked['token'] ?? asked['page'] ?? asked['skip'] ?? '')) === this.#troubledPage;
    let denial = {};
    if (isTroubled && this.#denialMode !== 'none' && (this.#denialMode !== 'transient' || this.#failures-- > 0)) {
      denial = this.#denial;
      records = this.#denialMode === 'partial' ? records.slice(0, Math.ceil(records.length / 2)) : [];
    }
    if (isTroubled && this.#cuts) records = records.slice(1);
    return this.#written(records, denial, { n, to, more: start + rows.length < this.#rows.length });
  }

  #written(records: object[], denial: object, { n, to, more }: { n: number; to: string; more: boolean }): Answered {
    const headers: Record<string, string> = {};
    const hasNext = more && !('success' in denial && records.length === 0);
    if (this.style === 'link-header' && !this.#strips)
      headers['link'] =
        `</style.css>; rel=preload; as=style; nopush${hasNext ? `, <${to}>; rel="next"` : ', </first>; rel=first'}`;
    if (this.#bare) return { status: 200, headers, body: records };
    const says = { honest: more, always: true, never: false }[this.#signMode];
    const around = { ...this.#decoy, ...this.#sign?.(says, `/next?token=${encodeURIComponent(to)}x`, n), ...denial };
    const total = this.tellsTotal ? { total: this.visible.length } : {};
    const token = { next: more ? to : null };
    const chain = this.style === 'token' || this.style === 'link' ? token : {};
    return { status: 200, headers, body: { ...around, ...total, ...chain, items: records } };
  }

  /** The rows that a request reaches, the place of the first one in the list, and what leads behind the last one. */
  #cut(asked: Readonly<Record<string, unknown>>): { start: number; rows: readonly Row[]; n: number; to: string } {
    const take = Math.min(Number(asked['take'] ?? this.size), this.#cap);
    if (this.style === 'skip-take' || this.style === 'page-number') {
      const asksFor = this.style === 'skip-take' ? Number(asked['skip']) : (Number(asked['page']) - 1) * this.#cap;
      const start = this.#ignores ? 0 : asksFor;
      return {
        start,
        rows: this.#rows.slice(start, start + take),
        n: Math.floor(start / this.#cap) + 1,
        to: `/next?skip=${start + take}`,
      };
    }
    const token = asked['token'] ?? asked['after'];
    const isLink = this.style === 'link' || this.style === 'link-header';
    const behind = token === undefined ? -Infinity : isLink ? Number(token) : this.#placeOf(String(token));
    const start = this.#rows.findIndex(({ place }) => place > behind);
    // Its records stand behind a cursor; what is hidden there would not be seen by any client.
    const rows = start === -1 ? [] : this.#rows.slice(start, start + take);
    const to = String(rows.at(-1)?.place ?? behind);
    const kept = this.#constants === 'kept' ? '&all=1' : '';
    const n = 1 + Math.ceil((start === -1 ? this.#rows.length : start) / this.#cap);
    return { start: start === -1 ? this.#rows.length : start, rows, n, to: isLink ? `/next?token=${to}${kept}` : `t${to}` };
  }

  #pageOf(asked: string): number {
    const known = this.#pagesSeen.get(asked) ?? this.#pagesSeen.size;
    this.#pagesSeen.set(asked, known);
    return known;
  }

  /** The place of a record, by its id, or the one behind which a token leads: the token is no number, since `0` and `-1` say that nothing follows. */
  #placeOf(idOrToken: string): number {
    return Number(idOrToken.slice(1));
  }

  #entry(): Record<string, unknown> {
    const { size } = this;
    const pager = {
      'skip-take': { style: 'skip-take', skipName: 'skip', takeName: 'take', size },
      'page-number': { style: 'page-number', pageName: 'page', sizeName: 'take', size },
      token: { style: 'continuation', tokenName: 'token', sizeName: 'take', size },
      link: { style: 'next-link', sizeName: 'take', size },
      'link-header': { style: 'next-link', sizeName: 'take', size },
      cursor: { style: 'continuation', tokenName: 'after', sizeName: 'take', size },
    }[this.style];
    const next = {
      token: 'next',
      link: 'next',
      cursor: 'last id',
      'skip-take': undefined,
      'page-number': undefined,
      'link-header': undefined,
    }[this.style];
    const fields = {
      data: this.#bare ? 'none' : 'items',
      ...(this.tellsTotal ? { total: 'total' } : !this.#bare && { total: 'none' }),
      ...(next && { next: this.#isMisnamed ? 'following' : next }),
    };
    const query = this.#constants === 'none' ? {} : { query: { all: '1' } };
    return { method: 'GET', path: '/{company_id}', pager, fields, ...query };
  }

  #row(isHidden: boolean, place = this.#born + 1): Row {
    this.#born += 1;
    this.#joined.set(`r${place}`, this.#night);
    return { id: `r${place}`, place, isHidden, needsConstant: place % 3 === 0 };
  }

  #change(insertsOnly = false): void {
    const at = this.#random(this.#rows.length + 1);
    if (insertsOnly || this.#random(2) === 0) {
      const before = this.#rows[at - 1]?.place ?? (this.#rows[0]?.place ?? 0) - 2;
      const after = this.#rows[at]?.place ?? before + 2;
      // Who may not see the end of the list does not see what joins there either.
      const isOutOfSight = this.#seesLess && this.#rows.slice(at).every((row) => row.isHidden);
      if (this.#rows.length < 80 && after - before > 1e-6)
        this.#rows.splice(at, 0, this.#row(isOutOfSight, (before + after) / 2));
    } else for (const { id } of this.#rows.splice(at, 1)) this.#steadfast.delete(id);
  }
}
