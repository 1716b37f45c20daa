// Checks the rules of the house that neither the compiler nor the ranks of rooms express: names and sizes of files, where SQL may stand, who
// may take an advisory lock, who may ask for the style of a pager, and plain English (`plain-english.ts`). usage: tsx scripts/check-house.ts [folder]; one line a violation, exit code 1 when there are any.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { PAGER_STYLES } from '../src/pagers/registry.js';
import { plainEnglishViolations } from './plain-english.js';

const root = process.argv[2] ?? process.cwd();

/** Names that say nothing of what is inside, so that anything ends up there. */
const EMPTY_NAMES = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'lib', 'misc', 'shared']);
const KEBAB_CASE = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*\.tsx?$/;

const MOST_LINES = 300;
const FEW_LINES = 20;
const FEWER_SMALL_FILES_THAN = 30;

/** Where SQL may stand: its home, the tables and views that are named after resources, and the server that is made ready before Prisma can reach it. */
const SQL_ROOMS = /^src\/(db|mirror|erasure|warehouse|embedded)\//;
/** `SELECT 1` asks whether a database answers, and so has no table to be at home with. */
const SQL_TEXT =
  /^\s*(?:SELECT(?!\s1$)|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH|LOCK\s+TABLE|TRUNCATE|CREATE|ALTER|DROP|NOTIFY|LISTEN)\s/;
/** Every writer of a table of schema muster stands in the table's home, where its locks are told. */
const TABLES_HOME = /^src\/db\/tables\//;
const WRITES_MUSTER = /\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?)\s+(?:ONLY\s+)?"?muster"?\./i;
/** They share a lock with Prisma's engine, and with BullMQ. */
const ADVISORY_FILES = new Set(['src/db/schema/migration-lock.ts', 'src/db/schema/queue-tables.ts']);
const ADVISORY_LOCK = /pg_(try_)?advisory/;
const SQL_MEMBERS = /^\$(?:query|execute)Raw/;
const PRISMA_SQL = new Set(['sql', 'raw', 'join', 'empty']);

const STYLE_ROOMS = /^src\/(pagers|catalogue)\//;
const STYLES = new Set(Object.keys(PAGER_STYLES));
const COMPARISONS = new Set([
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
  ts.SyntaxKind.EqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsToken,
]);

/** The generated client is left out, and packages that a folder of tests brings along. */
function sourceFiles(folder: string): string[] {
  if (!existsSync(path.join(root, folder))) return [];
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join(folder, file.split(path.sep).join('/')))
    .filter((file) => /\.tsx?$/.test(file) && !/^src\/generated\/|\/node_modules\//.test(file))
    .toSorted();
}

function nameViolations(file: string): string[] {
  const folders = file.split('/');
  const name = folders.pop() ?? '';
  const empty = [...folders, name.replace(/\..*$/, '')].filter((part) => EMPTY_NAMES.has(part));
  return [
    ...empty.map((part) => `${file}: "${part}" says nothing of what is inside; name it after its subject`),
    ...(KEBAB_CASE.test(name) ? [] : [`${file}: file names are kebab-case`]),
    ...(/^index\.tsx?$/.test(name) ? [`${file}: no index files; import each file by its own name`] : []),
  ];
}

function sizeViolations(lines: ReadonlyMap<string, number>): string[] {
  const long = [...lines].filter(([, count]) => count > MOST_LINES);
  const small = [...lines].filter(([, count]) => count < FEW_LINES).map(([file]) => file);
  return [
    ...long.map(([file, count]) => `${file}: ${count} lines; ${MOST_LINES} are the most`),
    ...(small.length < FEWER_SMALL_FILES_THAN
      ? []
      : [`src: ${small.length} files are under ${FEW_LINES} lines; join some of ${small.join(', ')}`]),
  ];
}

/** Finds SQL, questions about styles, locks and imports that only other rooms may have. */
function textViolations(file: string, source: ts.SourceFile): string[] {
  const lines = new Map<string, Set<number>>();
  const visit = (node: ts.Node): void => {
    const rules = [
      !SQL_ROOMS.test(file) && isSql(node) && 'SQL stands in src/db/tables, one home a table',
      !TABLES_HOME.test(file) && hasText(node, WRITES_MUSTER) && 'tables of schema muster are written in src/db/tables',
      !STYLE_ROOMS.test(file) && asksForStyle(node) && 'ask the pager instead of looking at its style',
      !ADVISORY_FILES.has(file) && hasText(node, ADVISORY_LOCK) && "advisory locks are everybody's: lock a row of muster.locks",
      isUnreadableImport(node) && 'imports something that is no plain string, so no rule of the rooms can be checked',
    ];
    const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    for (const rule of rules) if (rule) lines.set(rule, (lines.get(rule) ?? new Set()).add(line));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...lines].map(([rule, at]) => `${file}:${[...at].join(',')}: ${rule}`);
}

function isSql(node: ts.Node): boolean {
  if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) return SQL_TEXT.test(node.text);
  if (!ts.isPropertyAccessExpression(node)) return false;
  const { expression, name } = node;
  return SQL_MEMBERS.test(name.text) || (expression.getText() === 'Prisma' && PRISMA_SQL.has(name.text));
}

function hasText(node: ts.Node, text: RegExp): boolean {
  return (
    (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) && text.test(node.text)
  );
}

/** Reads a member `style`, or compares something with the name of a style. */
function asksForStyle(node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'style';
  if (ts.isBindingElement(node)) return (node.propertyName ?? node.name).getText() === 'style';
  const isStyle = (side: ts.Node) => ts.isStringLiteralLike(side) && STYLES.has(side.text);
  if (ts.isBinaryExpression(node)) return COMPARISONS.has(node.operatorToken.kind) && [node.left, node.right].some(isStyle);
  return ts.isCaseClause(node) && isStyle(node.expression);
}

function isUnreadableImport(node: ts.Node): boolean {
  if (!ts.isCallExpression(node) || node.expression.kind !== ts.SyntaxKind.ImportKeyword) return false;
  return !node.arguments[0] || !ts.isStringLiteralLike(node.arguments[0]);
}

const texts = new Map(sourceFiles('src').map((file) => [file, readFileSync(path.join(root, file), 'utf8')]));
const violations = [
  ...['src', 'test', 'bench', 'scripts'].flatMap(sourceFiles).flatMap(nameViolations),
  ...sizeViolations(new Map([...texts].map(([file, text]) => [file, text.trimEnd().split('\n').length]))),
  ...[...texts].flatMap(([file, text]) => {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    return [...textViolations(file, source), ...plainEnglishViolations(file, source)];
  }),
];
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exitCode = 1;
else console.log('house: names, sizes, SQL, pager styles and comments are in order');
