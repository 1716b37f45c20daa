import type { Command } from 'commander';
import { type Config, loadConfig } from '../../config/config.js';
import type { Lesson } from '../../sandbox/lessons/lesson.js';
import { LESSON_GROUPS, LESSONS } from '../../sandbox/lessons/registry.js';
import { companyOption, refuse } from '../operate/operator-command.js';
import { OWN_COMMAND } from '../own-command.js';
import { time } from '../table.js';
import { askSandbox, type BegunLessonModel, runningSandbox } from './sandbox-control.js';

interface LessonOptions {
  readonly json?: boolean;
}

interface BreakOptions extends LessonOptions {
  readonly company?: string;
  readonly list?: string;
  readonly for?: number;
}

/** The lists of the built-in catalogue. */
const ALWAYS_MIRRORED = new Set(['employees', 'departments']);

/** Commands that make the running sandbox fail as real services do. */
export function registerLessons(sandbox: Command): void {
  lessonCommand(sandbox, 'lessons', 'list the failures that the running sandbox can show, and their effects').action(list);
  lessonCommand(sandbox, 'break', 'begin a lesson in the running sandbox; without a name, list the lessons')
    .argument('[lesson]', 'name of the lesson, such as revoke, shrink, forbid or lie')
    .addOption(companyOption())
    .option('--list <name>', 'the list to break (default: one that shows the lesson)')
    .option('--for <time>', 'how long, such as 45s, 5m or 1h (default: until `mend`; 45s for faults that pass)', parseTime)
    .action(async (name: string | undefined, options: BreakOptions) => {
      if (name === undefined) return list(options);
      const target = { company_id: options.company, list: options.list, seconds: options.for };
      const path = `/sandbox/lessons/${encodeURIComponent(name)}/break`;
      const begun = await askSandbox<BegunLessonModel>(loadConfig(process.env), 'POST', path, target);
      if (options.json) console.log(JSON.stringify(begunModel(begun)));
      else for (const line of begunLines(begun)) console.log(line);
    });
  lessonCommand(sandbox, 'mend', 'end a lesson, or all of them, and undo their effects')
    .argument('[lesson]', 'name of the lesson')
    .action(async (name: string | undefined, { json }: LessonOptions) => {
      const path = `/sandbox/lessons/${name === undefined ? '' : `${encodeURIComponent(name)}/`}mend`;
      const { data } = await askSandbox<{ data: BegunLessonModel[] }>(loadConfig(process.env), 'POST', path);
      for (const mended of data) console.log(json ? JSON.stringify(mended) : mendedLines(mended).join('\n'));
      if (data.length === 0 && !json) console.log(name === undefined ? 'No lesson is on.' : `${name} is not on.`);
    });
}

function lessonCommand(sandbox: Command, name: string, description: string): Command {
  return sandbox.command(name).description(description).option('--json', 'print one JSON object a line');
}

async function list({ json }: LessonOptions): Promise<void> {
  const begun = await begunNow(loadConfig(process.env));
  for (const { title, lessons } of LESSON_GROUPS) {
    if (!json) console.log(`${title}\n`);
    for (const lesson of lessons) console.log(json ? JSON.stringify(model(lesson)) : `  ${lessonLine(lesson)}`);
    if (!json) console.log();
  }
  if (json) return;
  for (const one of begun) console.log(`${one.lesson} is on: ${about(one)}.`);
  console.log(`Begin one with ${OWN_COMMAND} sandbox break LESSON, and end it with ${OWN_COMMAND} sandbox mend.`);
}

/** The active lessons. Without a running sandbox there are none, since the list is readable without one. */
async function begunNow(config: Config): Promise<BegunLessonModel[]> {
  if (!runningSandbox(config)) return [];
  return (await askSandbox<{ data: BegunLessonModel[] }>(config, 'GET', '/sandbox/lessons')).data;
}

function lessonLine({ name, lists = ['employees'], does, see, next = ['sync'] }: Lesson): string {
  const first = lists[0] === 'employees' ? '' : ` (${lists[0]})`;
  const commands = next.map((word) => `\`muster ${word === 'start' ? 'sync' : word}\``);
  return `${(name + first).padEnd(NAME_WIDTH)}${does} Then ${commands.join(', ')}: ${see}`;
}

const NAME_WIDTH = 24;

function model({ name, does, see, next = ['sync'], lists, entry }: Lesson) {
  return { lesson: name, does, next, see, lists: lists ?? null, entry: entry ?? null };
}

function begunModel(begun: BegunLessonModel) {
  const { does, see, next, entry } = model(LESSONS.get(begun.lesson)!);
  return { ...begun, does, see, entry, next: next.map((word) => commandOf(word, begun)), mend: mendCommand(begun) };
}

function begunLines(begun: BegunLessonModel): string[] {
  const { does, see, entry, next, mend } = begunModel(begun);
  return [
    `${begun.lesson} is on: ${about(begun)}.`,
    does,
    ...(begun.list === null || ALWAYS_MIRRORED.has(begun.list)
      ? []
      : ['To mirror this list, start Muster with `MUSTER_CATALOGUE=examples/catalogue.yaml npm start`.']),
    ...(entry === null ? [] : [`The list's entry in the catalogue needs: ${entry}`]),
    '\nRun next',
    ...next.map((command) => `  ${command}`),
    '\nYou will see',
    `  ${see}`,
    '\nTo end it',
    `  ${mend}`,
  ];
}

function mendedLines(mended: BegunLessonModel): string[] {
  const ended = `${mended.lesson} has ended: ${about({ ...mended, until: null })}.`;
  if (LESSONS.get(mended.lesson)?.act.kind !== 'revoke') return [ended, `  ${commandOf('sync', mended)}`];
  return [
    ended,
    'If Muster has noticed it, the company must authorize again: open the link that this command prints, and press Allow.',
    `  ${OWN_COMMAND} connect-link --environment test --company ${mended.company_id}`,
  ];
}

function about({ company, company_id, list: resource, until }: BegunLessonModel): string {
  const what = resource === null ? 'the authorization' : resource;
  return `${what} of ${company} (${company_id})${until === null ? '' : `, until ${time(until)}`}`;
}

function mendCommand({ lesson }: BegunLessonModel): string {
  return `${OWN_COMMAND} sandbox mend ${lesson}`;
}

function commandOf(word: NonNullable<Lesson['next']>[number], { company_id }: BegunLessonModel): string {
  const company = `--environment test --company ${company_id}`;
  const commands = {
    sync: `sync ${company} --wait`,
    start: `sync ${company}`,
    holds: 'holds',
    companies: `companies ${company}`,
  };
  return `${OWN_COMMAND} ${commands[word]}`;
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

function parseTime(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smh])$/.exec(text) ?? [];
  return count === undefined ? refuse('It must be a time like 45s, 5m or 1h.') : Number(count) * UNITS[unit]!;
}
