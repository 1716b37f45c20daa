import { MusterError } from '../../src/core/errors.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import type { Sandbox } from '../../src/sandbox/sandbox.js';
import { draw, type Random } from './draw.js';

/** The company's lists. The tasks are a child list: each department has its own. */
export const RESOURCES = ['employees', 'departments', 'documents', 'tasks'] as const;
export type ModelResource = (typeof RESOURCES)[number];
type SandboxResource = Exclude<ModelResource, 'tasks'>;

const LISTS: Readonly<Record<ModelResource, number>> = { employees: 2, departments: 2, documents: 1, tasks: 1 };
const CHANGES = { join: 3, append: 1, leave: 3, leaveMany: 1, edit: 3, move: 1 };
type Change = keyof typeof CHANGES;

interface Task {
  readonly id: number;
  edition: number;
}

interface Presence {
  readonly text: string;
  readonly textSince: number;
  readonly joinedAt: number;
}

/** What one list of the service holds, and since when. Times are milliseconds of the epoch, never before what they stand for. */
export class ListHistory {
  /** The records that are there now, by the ids under which Muster keeps them. */
  readonly present = new Map<string, Presence>();
  /** When the ones left that are not there now. */
  readonly leftAt = new Map<string, number>();
  changedAt = 0;

  /** Those that are there now and were already before that time. */
  steadfastSince(time: number): string[] {
    return [...this.present].filter(([, { joinedAt }]) => joinedAt < time).map(([id]) => id);
  }

  observe(records: ReadonlyMap<string, string>, at: number): void {
    for (const id of [...this.present.keys()].filter((known) => !records.has(known))) {
      this.present.delete(id);
      this.leftAt.set(id, at);
      this.changedAt = at;
    }
    for (const [id, text] of records) {
      const before = this.present.get(id);
      if (before?.text === text) continue;
      this.present.set(id, { text, textSince: at, joinedAt: before?.joinedAt ?? at });
      this.leftAt.delete(id);
      this.changedAt = at;
    }
  }
}

/**
 * A company as the service holds it: lists of the sandbox, and the tasks of their departments, which the model serves itself. It
 * changes at random, and remembers what every list held since when.
 */
export class CompanyModel {
  readonly #histories = new Map(RESOURCES.map((resource) => [resource, new ListHistory()]));
  /** By department; kept when one leaves, for it may come back. */
  readonly #tasks = new Map<string, Task[]>();
  readonly #firstDepartments: readonly string[];
  #bornTasks = 100;

  constructor(
    private readonly sandbox: Sandbox,
    private readonly companyId: string,
    private readonly random: Random,
  ) {
    this.#firstDepartments = this.#list('departments').texts();
    this.#observe(0);
  }

  history(resource: ModelResource): ListHistory {
    return this.#histories.get(resource)!;
  }

  /** One change of one list; says which. */
  change(resource: ModelResource = draw(this.random, LISTS), kind: Change = draw(this.random, CHANGES)): string {
    const where = resource === 'tasks' ? this.#changeTasks(kind) : this.#changeList(resource, kind);
    this.#observe();
    return `${resource}: ${kind} at ${where}`;
  }

  /** The departments of the beginning that have left come back, with their tasks. */
  bringBackDepartments(): string {
    const list = this.#list('departments');
    const present = this.history('departments').present;
    for (const text of this.#firstDepartments) if (!present.has(idOf(text))) list.insert(list.size, text);
    this.#observe();
    return 'departments: those that left come back';
  }

  /** The answer to a request for a department's tasks; undefined for any other. */
  answer({ path, query }: ApiRequest): string | undefined {
    const encoded = /\/departments\/([^/]+)\/tasks$/.exec(path)?.[1];
    if (encoded === undefined) return undefined;
    const department = decodeURIComponent(encoded);
    if (!this.history('departments').present.has(department))
      throw new MusterError('service_refused', 'no such department', { details: { status: 404, own_words: true } });
    const tasks = this.#tasks.get(department)!;
    const skip = Number(query!['skip']);
    const data = tasks.slice(skip, skip + Number(query!['take'])).map((task) => taskText(department, task));
    return `{"totalRecords":${tasks.length},"totalDisplayRecords":${data.length},"data":[${data.join(',')}]}`;
  }

  #list(resource: SandboxResource) {
    return this.sandbox.list(this.companyId, resource);
  }

  #changeList(resource: SandboxResource, kind: Change): string {
    const list = this.#list(resource);
    // The ends of a list are where walks have the most to mistake.
    const index = [0, Math.max(0, list.size - 1), this.random(list.size || 1)][this.random(3)]!;
    if (kind === 'join' || list.size === 0) for (let n = this.random(3); n >= 0; n -= 1) list.insert(index);
    else if (kind === 'append') list.insert(list.size);
    else if (kind === 'leave') list.remove(index, 1 + this.random(2));
    else if (kind === 'leaveMany') list.remove(index % 3, 8 + this.random(20));
    else if (kind === 'edit') list.change(index);
    else this.#move(resource, index);
    return `${index}, ${list.size} now`;
  }

  /** To a walk, who moves may never have been there: the record leaves and joins. */
  #move(resource: SandboxResource, index: number): void {
    const list = this.#list(resource);
    const text = list.texts()[index]!;
    list.remove(index);
    this.#observe();
    list.insert(this.random(list.size + 1), text);
  }

  #changeTasks(kind: Change): string {
    const [department] = [...this.history('departments').present.keys()].slice(this.random(this.#list('departments').size || 1));
    if (department === undefined) return 'no department';
    const tasks = this.#tasks.get(department)!;
    const index = this.random(tasks.length || 1);
    if (kind === 'join' || kind === 'append' || tasks.length === 0)
      tasks.splice(index, 0, { id: (this.#bornTasks += 1), edition: 0 });
    else if (kind === 'edit') tasks[index]!.edition += 1;
    else tasks.splice(index, 1);
    return `${index} of ${department}`;
  }

  /** Rounded up: what happened before a moment that the database names is never taken for later. */
  #observe(at = Date.now() + 1): void {
    for (const resource of ['employees', 'departments', 'documents'] as const) {
      const texts = this.#list(resource).texts();
      this.history(resource).observe(new Map(texts.map((text) => [idOf(text), text])), at);
    }
    const departments = [...this.history('departments').present.keys()];
    for (const department of departments) if (!this.#tasks.has(department)) this.#tasks.set(department, this.#someTasks());
    const tasks = new Map<string, string>();
    for (const department of departments)
      for (const task of this.#tasks.get(department)!)
        tasks.set(`${encodeURIComponent(department)}/${task.id}`, taskText(department, task));
    const history = this.history('tasks');
    history.observe(tasks, at);
    // A department without tasks joins or leaves, and other requests are made.
    history.changedAt = Math.max(history.changedAt, this.history('departments').changedAt);
  }

  #someTasks(): Task[] {
    return Array.from({ length: this.random(5) }, (_, n) => ({ id: n + 1, edition: 0 }));
  }
}

function taskText(department: string, { id, edition }: Task): string {
  return `{"id":${id},"of":${JSON.stringify(department)},"edition":${edition}}`;
}

function idOf(text: string): string {
  const { uid, id } = JSON.parse(text) as { uid?: string; id?: string | number };
  return String(uid ?? id);
}
