// Writes src/schema.ts: the types of the OpenAPI document filestore-server/docs/openapi.json.
//
//   node scripts/schema.mjs           writes the file
//   node scripts/schema.mjs --check   fails if the file is not what this program writes
//
// The document describes words that later versions can add to as `anyOf: [enum, string]`. Such a word becomes
// `'READY' | (string & {})`: editors complete the known words, and the compiler accepts the others.
import { readFile, writeFile } from 'node:fs/promises';

const DOCUMENT = new URL('../../../filestore-server/docs/openapi.json', import.meta.url);
const TARGET = new URL('../src/schema.ts', import.meta.url);
const WIDTH = 120;

/** Names that would hide a class of this package, or a global of browsers. */
const RENAMED = { Problem: 'ProblemDocument', Event: 'LogEvent' };

const api = JSON.parse(await readFile(DOCUMENT, 'utf8'));

function named(reference) {
  const name = reference.split('/').at(-1);
  return RENAMED[name] ?? name;
}

function resolved(thing) {
  if (!thing?.$ref) return thing;
  return thing.$ref.split('/').slice(1).reduce((at, step) => at[step], api);
}

/** Breaks a text into the lines of a comment. */
function wrapped(text, indent) {
  const room = WIDTH - indent.length - ' * '.length;
  const lines = [];
  for (const paragraph of text.split('\n')) {
    // Lines of the document that continue a sentence are joined again, because indents differ here.
    const joins = lines.length > 0 && paragraph && !/^([-*#|]|\s|$)/.test(paragraph) && lines.at(-1) !== '';
    let line = joins ? lines.pop() : '';
    for (const word of paragraph.split(' ').filter(Boolean)) {
      if (line && line.length + 1 + word.length > room) {
        lines.push(line);
        line = '';
      }
      line += (line ? ' ' : '') + word;
    }
    lines.push(line);
  }
  return lines;
}

function comment(text, indent = '') {
  if (!text) return '';
  const safe = text.replaceAll('*/', '*\u200b/');
  const lines = wrapped(safe, indent);
  if (lines.length === 1 && lines[0].length + indent.length + 7 <= WIDTH) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n`;
}

const literal = (value) => (typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value));
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name));

/** True for a word that later versions can add to. */
function isOpen(options) {
  return options.length === 2 && options[0].enum && options[1].type === 'string' && !options[1].enum;
}

function union(options, indent) {
  if (isOpen(options)) return [...options[0].enum.map(literal), '(string & {})'].join(' | ');
  return [...new Set(options.map((option) => typeOf(option, indent)))].join(' | ');
}

function single(type, schema, indent) {
  switch (type) {
    case 'string':
      return schema.format === 'binary' ? 'Blob' : 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array': {
      const item = typeOf(schema.items, indent);
      return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return objectType(schema, indent);
    default:
      return 'unknown';
  }
}

function objectType(schema, indent) {
  const members = Object.entries(schema.properties ?? {});
  const values = schema.additionalProperties;
  if (members.length === 0) {
    if (values === false) return 'Record<string, never>';
    return `Record<string, ${values && values !== true ? typeOf(values, indent) : 'unknown'}>`;
  }
  const inner = `${indent}  `;
  const lines = members.map(([name, member]) => {
    const mark = schema.required?.includes(name) ? '' : '?';
    return `${comment(member.description, inner)}${inner}${key(name)}${mark}: ${typeOf(member, inner)};\n`;
  });
  return `{\n${lines.join('')}${indent}}`;
}

function typeOf(schema, indent = '') {
  if (schema === true || schema === undefined) return 'unknown';
  if (schema.$ref) return named(schema.$ref);
  if (schema.allOf) {
    const parts = schema.allOf.map((part) => typeOf(part, indent));
    if (!schema.required) return parts.join(' & ');
    return `Required<Pick<${parts.join(' & ')}, ${schema.required.map(literal).join(' | ')}>> & ${parts.join(' & ')}`;
  }
  if (schema.anyOf) return union(schema.anyOf, indent);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => single(type, schema, indent)).join(' | ');
  return single(schema.type, schema, indent);
}

function schemas() {
  return Object.entries(api.components.schemas).map(([name, schema]) => {
    const text = typeOf(schema);
    const own = RENAMED[name] ?? name;
    const isInterface = text.startsWith('{') && !/[|&]/.test(text.slice(text.lastIndexOf('}')));
    const line = `export type ${own} = ${text};`;
    const alias = line.length <= WIDTH ? line : `export type ${own} =\n  | ${text.replaceAll(' | ', '\n  | ')};`;
    const declared = isInterface ? `export interface ${own} ${text}` : alias;
    return `${comment(schema.description)}${declared}\n`;
  });
}

/** The parameters of one place (`path`, `query` or `header`), or an empty text. */
function parameters(operation, shared, place, indent) {
  const all = [...(shared ?? []), ...(operation.parameters ?? [])].map(resolved);
  const there = all.filter((parameter) => parameter.in === place);
  if (there.length === 0) return '';
  const inner = `${indent}  `;
  const lines = there.map((parameter) => {
    const { name, schema, required, explode } = parameter;
    const about = comment(parameter.description, inner);
    // An object in the query is a parameter for each member, for example `metadata.customer=7`.
    if (schema.type === 'object') return `${about}${inner}[member: \`${name}.\${string}\`]: string | undefined;\n`;
    const text = schema.type === 'array' && explode === false ? 'string | readonly string[]' : typeOf(schema, inner);
    return `${about}${inner}${key(name)}${required ? `: ${text}` : `?: ${text} | undefined`};\n`;
  });
  const mark = there.some((parameter) => parameter.required) ? '' : '?';
  const member = place === 'header' ? 'headers' : place;
  return `${indent}${member}${mark}: {\n${lines.join('')}${indent}};\n`;
}

function body(operation, indent) {
  const content = operation.requestBody?.content;
  if (!content) return '';
  const kinds = Object.keys(content);
  let text;
  if (kinds.some((kind) => kind.startsWith('multipart/'))) text = 'FormData';
  else if (kinds.every((kind) => kind.endsWith('json'))) text = typeOf(content[kinds[0]].schema, indent);
  else text = 'Blob | ArrayBuffer | ArrayBufferView';
  return `${indent}body${operation.requestBody.required ? '' : '?'}: ${text};\n`;
}

function reply(operation, indent) {
  const types = new Set();
  for (const [status, answer] of Object.entries(operation.responses)) {
    if (!status.startsWith('2')) continue;
    const content = Object.entries(resolved(answer).content ?? {});
    if (content.length === 0) types.add('undefined');
    for (const [kind, { schema }] of content) {
      if (kind === 'text/event-stream') continue;
      if (kind.endsWith('json')) types.add(typeOf(schema, indent));
      else types.add(kind.startsWith('text/') ? 'string' : 'Blob');
    }
  }
  return `${indent}reply: ${[...types].join(' | ')};\n`;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

function operations() {
  const indent = '    ';
  const lines = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((method) => item[method])) {
      const operation = item[method];
      const members = [
        ...['path', 'query', 'header'].map((place) => parameters(operation, item.parameters, place, indent)),
        body(operation, indent),
        reply(operation, indent),
      ];
      const name = literal(`${method.toUpperCase()} ${path}`);
      lines.push(`${comment(operation.summary, '  ')}  ${name}: {\n${members.join('')}  };\n`);
    }
  }
  return lines.join('');
}

const text = `// Written by scripts/schema.mjs from filestore-server/docs/openapi.json. Do not edit.

${schemas().join('\n')}
/** Every call of the API, by method and path: its parameters, its body and its reply. */
export interface Operations {
${operations()}}
`;

if (process.argv.includes('--check')) {
  const committed = await readFile(TARGET, 'utf8').catch(() => '');
  if (committed !== text) {
    console.error('src/schema.ts does not fit openapi.json: run `npm run schema`');
    process.exit(1);
  }
} else {
  await writeFile(TARGET, text);
}
