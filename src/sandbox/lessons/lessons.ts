import type { Clock } from '../../core/clock.js';
import { parseCompanyId } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { type PlannedCompany, RESOURCES, type Resource } from '../company-spec.js';
import type { Effect } from '../faults.js';
import type { Grants } from '../grants.js';
import type { World } from '../world.js';
import type { FetchedPage } from './answered-page.js';
import type { Lesson } from './lesson.js';
import { LESSONS } from './registry.js';

/** The company and list of a lesson. A missing one is chosen so that the lesson has a visible effect. */
export interface LessonTarget {
  /** The id of a company, its name or a part of it, or the beginning of its id. */
  readonly companyId?: string | undefined;
  readonly resource?: string | undefined;
  /** Its duration; default: the lesson's usual one. */
  readonly seconds?: number | undefined;
}

export interface BegunLesson {
  readonly lesson: Lesson;
  readonly companyId: string;
  /** Undefined if it concerns the company's tokens. */
  readonly resource: Resource | undefined;
  /** Milliseconds since the epoch; undefined: until it is mended. */
  readonly until: number | undefined;
}

interface Begun extends BegunLesson {
  /** Ids of the hidden records. */
  readonly hidden: ReadonlySet<string>;
  readonly restore: () => void;
  /** How many requests it has affected. */
  count: number;
}

const NOTHING: ReadonlySet<string> = new Set();

/** The active lessons. They are only in memory, so a restart ends them all. */
export class Lessons {
  readonly #clock: Clock;
  readonly #world: World;
  readonly #grants: Grants;
  #begun: Begun[] = [];

  constructor(clock: Clock, world: World, grants: Grants) {
    this.#clock = clock;
    this.#world = world;
    this.#grants = grants;
  }

  get active(): readonly BegunLesson[] {
    return this.#active();
  }

  /** Begins a lesson, or restarts an active one. Throws `invalid_request` if the target does not fit, and `company_not_found`. */
  break(name: string, target: LessonTarget = {}): BegunLesson {
    const lesson = lessonOf(name);
    const isOfList = lesson.act.kind !== 'token' && lesson.act.kind !== 'revoke';
    if (!isOfList && target.resource !== undefined) throw invalid(`${name} concerns a company, not one of its lists.`);
    const resource = isOfList ? resourceOf(lesson, target.resource) : undefined;
    const companyId = this.#companyFor(lesson, resource ?? 'employees', target.companyId);
    const seconds = target.seconds ?? lesson.seconds;
    this.#end((one) => one.lesson === lesson && one.companyId === companyId && one.resource === resource);
    const begun: Begun = {
      lesson,
      companyId,
      resource,
      until: seconds === undefined ? undefined : this.#clock.now() + seconds * 1000,
      hidden: this.#hiddenBy(lesson, companyId, resource),
      restore: this.#beginForTokens(lesson, companyId),
      count: 0,
    };
    this.#begun.push(begun);
    return begun;
  }

  /** Ends one lesson everywhere, or all lessons. Returns the ended ones. Throws `invalid_request` for an unknown name. */
  mend(name?: string): readonly BegunLesson[] {
    const lesson = name === undefined ? undefined : lessonOf(name);
    this.#active();
    return this.#end((one) => lesson === undefined || one.lesson === lesson);
  }

  meet(companyId: string, resource: Resource): Effect | undefined {
    for (const one of this.#active()) {
      if (one.companyId !== companyId || one.resource !== resource || one.lesson.act.kind !== 'request') continue;
      const { effect } = one.lesson.act;
      return typeof effect === 'function' ? effect(one.count++, this.#clock.now()) : effect;
    }
    return undefined;
  }

  meetRefresh(companyId: string | undefined): Effect | undefined {
    const acts = this.#active()
      .filter((one) => one.companyId === companyId)
      .map(({ lesson }) => lesson.act);
    return acts.find((act) => act.kind === 'token')?.effect;
  }

  hidden(companyId: string, resource: Resource): ReadonlySet<string> {
    const sets = this.#of(companyId, resource).map(({ hidden }) => hidden);
    return sets.length === 0 ? NOTHING : new Set(sets.flatMap((set) => [...set]));
  }

  /** The page as the lessons of its list change it. */
  change(companyId: string, page: FetchedPage): FetchedPage {
    return this.#of(companyId, page.resource).reduce(
      (changed, { lesson: { act } }) => (act.kind === 'page' ? act.change(changed) : changed),
      page,
    );
  }

  #of(companyId: string, resource: Resource): Begun[] {
    return this.#active().filter((one) => one.companyId === companyId && one.resource === resource);
  }

  #active(): Begun[] {
    const now = this.#clock.now();
    this.#end(({ until }) => until !== undefined && until <= now);
    return this.#begun;
  }

  #end(isMeant: (one: Begun) => boolean): Begun[] {
    const ended = this.#begun.filter(isMeant);
    if (ended.length > 0) this.#begun = this.#begun.filter((one) => !ended.includes(one));
    for (const { restore } of ended) restore();
    return ended;
  }

  #hiddenBy({ act }: Lesson, companyId: string, resource: Resource | undefined): ReadonlySet<string> {
    if (act.kind !== 'hide' || resource === undefined) return NOTHING;
    return new Set(
      this.#world
        .list(companyId, resource)
        .ids()
        .filter((_, index) => act.hides(index)),
    );
  }

  #beginForTokens({ act }: Lesson, companyId: string): () => void {
    if (act.kind === 'token') this.#grants.endAccessTokens(companyId);
    return act.kind === 'revoke' ? this.#grants.suspend(companyId) : () => {};
  }

  /** The company with this id, with the text in its name, or at the beginning of its id. A whole name wins over a part of others. */
  #companyNamed(text: string): PlannedCompany {
    if (parseCompanyId(text) !== undefined) return this.#world.company(text);
    const sought = text.trim().toLowerCase();
    const found = [...this.#world.companies.values()].filter(
      ({ companyId, name }) => companyId.startsWith(sought) || name.toLowerCase().includes(sought),
    );
    const same = found.filter(({ name }) => name.toLowerCase() === sought);
    const [company, another] = same.length > 0 ? same : found;
    if (company !== undefined && another === undefined) return company;
    const names = (found.length > 0 ? found : [...this.#world.companies.values()]).map(({ name }) => name).join(', ');
    throw invalid(
      found.length > 0
        ? `${JSON.stringify(text)} may mean ${names}: give more of the name, or the company_id.`
        : `The sandbox has no company ${JSON.stringify(text)}: there are ${names}.`,
    );
  }

  /** The requested company, if its list fits the lesson; without a request, a company whose list fits. */
  #companyFor(lesson: Lesson, resource: Resource, requested: string | undefined): string {
    const { records = 1, name } = lesson;
    const size = (companyId: string) => this.#world.list(companyId, resource).size;
    const fits = (companyId: string) => (records === 'none' ? size(companyId) === 0 : size(companyId) >= records);
    const wanted = records === 'none' ? 'a list without records' : `a list of ${records} records or more`;
    if (requested !== undefined) {
      const { companyId } = this.#companyNamed(requested);
      if (fits(companyId)) return companyId;
      throw invalid(`${name} needs ${wanted}, and ${resource} of ${companyId} has ${size(companyId)}. Choose another company.`);
    }
    const fitting = [...this.#world.companies.keys()].filter(fits);
    const usual = fitting.find((companyId) => records === 'none' || size(companyId) >= USUAL_SIZE) ?? fitting.at(-1);
    if (usual === undefined) throw invalid(`${name} needs ${wanted}, and no company has such ${resource}. Choose another list.`);
    return usual;
  }
}

/** This is large enough for several pages, and small enough to be read within a second. */
const USUAL_SIZE = 100;

function lessonOf(name: string): Lesson {
  const lesson = LESSONS.get(name);
  if (!lesson) throw invalid(`There is no lesson ${JSON.stringify(name)}: \`muster sandbox lessons\` lists them.`);
  return lesson;
}

function resourceOf({ name, lists = RESOURCES }: Lesson, requested: string | undefined): Resource {
  const resource = requested === undefined ? lists[0] : lists.find((list) => list === requested);
  if (resource) return resource;
  throw invalid(`${name} has no effect on the list ${JSON.stringify(requested)}: choose ${lists.join(', ')}.`);
}

function invalid(message: string): MusterError {
  return new MusterError('invalid_request', message);
}
