// For TypeDoc, which asks for a comment on all: fields of a type that is written where it is used, and the setter beside a
// getter, are told by the comment of what they are a part of.
import { Converter, ReflectionKind } from "typedoc";

const SETTER = ReflectionKind.SetSignature;
const FIELD = ReflectionKind.Property;

export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    const parts = project
      .getReflectionsByKind(SETTER | FIELD)
      .filter((part) => !part.hasComment() && (part.kind === SETTER || part.parent.kind === ReflectionKind.TypeLiteral))
      .filter((part) => !isOfParameter(part));
    const names = parts.map((part) => part.getFriendlyFullName());
    app.options.setValue("intentionallyNotDocumented", names);
  });
}

/** TypeDoc asks for no comment there, and warns of what it would not have asked for. */
function isOfParameter({ parent }) {
  return parent !== undefined && (parent.kind === ReflectionKind.Parameter || isOfParameter(parent));
}
