// Finds comments without a subject, and words of a dialect that a reader must translate. `scripts/check-house.ts` asks it for each file of src.
import ts from 'typescript';

/** A comment whose first sentence begins so has no subject, or hides it. */
const HEADLESS = /^(?:What|Of|Those|Behind|Whoever|Whose|The same|By|As|So|Everything that)\b/;

/** Each word with what to write instead. */
const DIALECT: Readonly<Record<string, string>> = {
  nobody: 'name who it is: "no process", "no caller", "no person"',
  somebody: 'name who it is: "another worker", "the caller", "a person"',
  whoever: 'name who it is: "the caller", "the reader"',
  anew: 'write "again"',
  meanwhile: 'write "concurrently" or "until then"',
  'for good': 'write "permanently"',
  'as far as': 'write "if" or "up to"',
  'goes by': 'write "is based on" or "uses"',
  'from which on': 'split the sentence, or write "since" or "after which"',
  'stands in': 'write "is in" or "is stored in"',
};
const DIALECT_WORDS = new RegExp(`\\b(?:${Object.keys(DIALECT).join('|').replaceAll(' ', '[\\s*/]+')})\\b`, 'gi');

export function plainEnglishViolations(file: string, source: ts.SourceFile): string[] {
  const found: { at: number; rule: string }[] = [];
  const findDialect = (start: number, end: number) => {
    for (const match of source.text.slice(start, end).matchAll(DIALECT_WORDS)) {
      const word = match[0].toLowerCase().replace(/[\s*/]+/g, ' ');
      found.push({ at: start + match.index, rule: `"${word}": ${DIALECT[word]}` });
    }
  };
  for (const { pos, end } of commentsOf(source)) {
    const [head] = HEADLESS.exec(source.text.slice(pos, end).replace(/^[\s*/]+/, '')) ?? [];
    if (head) found.push({ at: pos, rule: `a comment begins with "${head}": write a sentence with a subject and a verb` });
    findDialect(pos, end);
  }
  const visit = (node: ts.Node): void => {
    if (isText(node) && /\s/.test(node.text)) findDialect(node.getStart(source), node.end);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found.map(({ at, rule }) => `${file}:${source.getLineAndCharacterOfPosition(at).line + 1}: ${rule}`);
}

/** A text for people has a space: `nobody` alone may be the name of an account. */
function isText(node: ts.Node): node is ts.LiteralLikeNode {
  return ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isJsxText(node);
}

/** Comments before and after each token. Lines of `//` that follow one another are one comment. */
function commentsOf(source: ts.SourceFile): { pos: number; end: number }[] {
  const comments = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node): void => {
    const children = node.getChildren(source);
    for (const child of children) visit(child);
    if (children.length > 0 || ts.isJsxText(node)) return;
    const leading = ts.getLeadingCommentRanges(source.text, node.pos) ?? [];
    const trailing = ts.getTrailingCommentRanges(source.text, node.end) ?? [];
    for (const comment of [...leading, ...trailing]) comments.set(comment.pos, comment);
  };
  visit(source);
  const joined: ts.CommentRange[] = [];
  for (const comment of [...comments.values()].toSorted((a, b) => a.pos - b.pos)) {
    const last = joined.at(-1);
    const follows = last?.kind === ts.SyntaxKind.SingleLineCommentTrivia && comment.kind === last.kind;
    if (follows && /^\r?\n[ \t]*$/.test(source.text.slice(last.end, comment.pos))) last.end = comment.end;
    else joined.push({ ...comment });
  }
  return joined;
}
