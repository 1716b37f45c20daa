/** A module that a source text names. */
export interface Import {
  /** As written; undefined when it is not a plain string, so that nobody can tell what is imported. */
  readonly specifier: string | undefined;
  /** Counted from 1. */
  readonly line: number;
}

type Token = { readonly kind: 'word' | 'string' | 'sign'; readonly text: string; readonly at: number };

const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y;
const WORD = /[\p{ID_Start}\d$_#][\p{ID_Continue}$]*/uy;
const REGULAR_EXPRESSION = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
/** Text of a template up to its end or its next substitution. */
const TEMPLATE_TEXT = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y;
/** Words after which a slash begins a regular expression and does not divide. */
const BEFORE_EXPRESSION = new Set([
  'return',
  'typeof',
  'case',
  'in',
  'of',
  'do',
  'else',
  'void',
  'delete',
  'await',
  'yield',
  'throw',
  'new',
]);

/**
 * Every module that a TypeScript source imports: import and export declarations (with and without `type`), `import()` as an
 * expression and as a type, `require()`. Text in comments, strings, templates and regular expressions does not count.
 */
export function importsOf(source: string): Import[] {
  const tokens = tokensOf(source);
  return tokens.flatMap((token, i) => {
    const [before, next, argument] = [tokens[i - 1], tokens[i + 1], tokens[i + 2]];
    if (token.kind !== 'word' || before?.text === '.') return [];
    const names = (named: Token | undefined): Import[] => [
      {
        specifier: named?.kind === 'string' ? named.text.slice(1, -1) : undefined,
        line: source.slice(0, token.at).split('\n').length,
      },
    ];
    if ((token.text === 'from' || token.text === 'import') && next?.kind === 'string') return names(next);
    if ((token.text === 'import' || token.text === 'require') && next?.text === '(') return names(argument);
    return [];
  });
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  /** What each closing brace returns to: code, or the text of a template. */
  const braces: ('code' | 'template')[] = [];
  let at = 0;

  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  const skipTemplateText = () => {
    const text = match(TEMPLATE_TEXT) ?? '';
    at += text.length;
    if (text.endsWith('${')) braces.push('template');
  };

  while (at < source.length) {
    const blank = match(BLANK);
    if (blank) {
      at += blank.length;
      continue;
    }
    const string = match(STRING);
    const word = string === undefined ? match(WORD) : undefined;
    const expression = source[at] === '/' && beginsExpression(tokens.at(-1)) ? match(REGULAR_EXPRESSION) : undefined;
    const text = string ?? word ?? expression ?? source[at] ?? '';
    tokens.push({ kind: string ? 'string' : word ? 'word' : 'sign', text, at });
    at += text.length;
    if (text === '`') skipTemplateText();
    else if (text === '{') braces.push('code');
    else if (text === '}' && braces.pop() === 'template') skipTemplateText();
  }
  return tokens;
}

function beginsExpression(before: Token | undefined): boolean {
  if (!before) return true;
  return before.kind === 'word'
    ? BEFORE_EXPRESSION.has(before.text)
    : before.kind === 'sign' && !/^[)\]}`]$|^\/./.test(before.text);
}
