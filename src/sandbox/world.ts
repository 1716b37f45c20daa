import type { Clock } from '../core/clock.js';
import { parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { type PlannedCompany, RESOURCES, type Resource } from './company-spec.js';
import { Random } from './random.js';
import { RecordList } from './record-list.js';
import { companyText, recordText } from './record-text.js';

/** The data of the sandbox's companies. Lists are generated at their first use. */
export class World {
  readonly companies: ReadonlyMap<string, PlannedCompany>;
  readonly #seed: number;
  readonly #unstable: readonly Resource[];
  readonly #lists = new Map<string, RecordList>();
  #random: Random;

  constructor(companies: readonly PlannedCompany[], seed: number, unstable: readonly Resource[]) {
    this.companies = new Map(companies.map((company) => [company.companyId, company]));
    this.#seed = seed;
    this.#unstable = unstable;
    this.#random = new Random(`${seed} mutations`);
  }

  company(companyId: string): PlannedCompany {
    const company = this.companies.get(parseCompanyId(companyId) ?? '');
    if (!company) throw new MusterError('company_not_found', `The sandbox has no company ${companyId}.`);
    return company;
  }

  companyRecord(companyId: string): string {
    return companyText(this.company(companyId), this.#seed);
  }

  list(companyId: string, resource: Resource): RecordList {
    const company = this.company(companyId);
    const key = `${company.companyId} ${resource}`;
    let list = this.#lists.get(key);
    if (!list) {
      list = new RecordList(company[resource], this.#unstable.includes(resource) ? 'unstable' : 'stable', (serial, edition) =>
        recordText(company, this.#seed, resource, serial, edition),
      );
      this.#lists.set(key, list);
    }
    return list;
  }

  get size(): number {
    return this.#allLists().reduce((sum, list) => sum + list.size, 0);
  }

  /**
   * Changes, adds or removes `count` records (7 in 10 change). Lists are chosen in proportion to their size; an empty list stays empty, and the
   * last record of a list never leaves.
   */
  mutate(count: number): { readonly changed: number; readonly joined: number; readonly left: number } {
    const done = { changed: 0, joined: 0, left: 0 };
    const lists = this.#allLists();
    for (let i = 0; i < count; i++) {
      const met = this.#anyRecord(lists);
      if (!met) break;
      const { list, index } = met;
      const dice = this.#random.below(20);
      if (dice < 3) {
        list.insert(this.#random.below(list.size + 1));
        done.joined++;
      } else if (dice < 6 && list.size > 1) {
        list.remove(index);
        done.left++;
      } else {
        list.change(index);
        done.changed++;
      }
    }
    return done;
  }

  reset(): void {
    this.#lists.clear();
    this.#random = new Random(`${this.#seed} mutations`);
  }

  #anyRecord(lists: readonly RecordList[]): { list: RecordList; index: number } | undefined {
    let index = this.#random.below(lists.reduce((sum, list) => sum + list.size, 0));
    for (const list of lists) {
      if (index < list.size) return { list, index };
      index -= list.size;
    }
    return undefined;
  }

  #allLists(): RecordList[] {
    return [...this.companies.keys()].flatMap((companyId) => RESOURCES.map((resource) => this.list(companyId, resource)));
  }
}

const TICK_MS = 1000;

/** Makes records change, join and leave every second, as in a live system, until the signal aborts. */
export async function keepAlive(world: World, share: number, clock: Clock, signal: AbortSignal): Promise<void> {
  let due = 0;
  while (!signal.aborted) {
    await clock.sleep(TICK_MS, signal).catch(() => {});
    if (signal.aborted) return;
    due += (world.size * share * TICK_MS) / 60_000;
    const now = Math.floor(due);
    due -= now;
    if (now > 0) world.mutate(now);
  }
}
