/** What the SDK and the server say of a failure, in German. */
import type { Errors } from "../failure.js";

const AGAIN = "Bitte versuchen Sie es noch einmal.";
const RELOAD = "Bitte die Seite neu laden.";
const ASK = "Bitte fragen Sie, wer den Anruf veranstaltet.";

export const errors: Errors = {
  unsupported_version: { message: "Diese Seite spricht eine andere Version als der Server.", hint: RELOAD },
  malformed: { message: "Der Server hat eine Nachricht der Seite nicht verstanden.", hint: RELOAD },
  unknown_type: { message: "Der Server kennt eine Nachricht der Seite nicht.", hint: RELOAD },
  not_joined: { message: "Sie nehmen an keinem Anruf teil.", hint: AGAIN },
  already_joined: { message: "Sie nehmen schon teil.", hint: RELOAD },
  unauthorized: { message: "Dieser Anruf braucht eine Einladung.", hint: "Bitte den Link der Einladung öffnen." },
  token_expired: { message: "Die Einladung ist abgelaufen.", hint: "Bitte lassen Sie sich eine neue geben." },
  forbidden: { message: "Das ist hier nicht erlaubt.", hint: ASK },
  replaced: { message: "Sie nehmen jetzt von anderswo teil.", hint: "Hier können Sie das Fenster schließen." },
  removed: { message: "Sie wurden aus dem Anruf entfernt.", hint: ASK },
  banned: { message: "Sie sind aus diesem Anruf ausgeschlossen.", hint: ASK },
  revoked: { message: "Die Einladung wurde zurückgezogen.", hint: "Bitte lassen Sie sich eine neue geben." },
  refused: { message: "Sie wurden nicht eingelassen.", hint: ASK },
  locked: { message: "Der Anruf ist geschlossen.", hint: ASK },
  room_full: { message: "Der Raum ist voll.", hint: "Bitte versuchen Sie es später noch einmal." },
  server_full: { message: "Der Server ist voll.", hint: "Bitte versuchen Sie es später noch einmal." },
  bad_sdp: { message: "Browser und Server verstehen sich nicht.", hint: "Bitte einen aktuellen Browser benutzen." },
  unknown_track: { message: "Das gibt es im Anruf nicht mehr.", hint: AGAIN },
  unknown_participant: { message: "Diese Person ist nicht mehr im Anruf.", hint: "Es ist nichts weiter zu tun." },
  no_identity: { message: "Diese Person hat keine Identität.", hint: "Sie lässt sich nur entfernen." },
  too_many_rules: {
    message: "Der Server merkt sich nicht noch mehr Regeln.",
    hint: "Bitte heben Sie eine andere auf.",
  },
  no_codec: {
    message: "Dieser Browser hat keinen der Video-Codecs von Anrufen: VP9, VP8, H.264, AV1.",
    hint: "Bitte einen aktuellen Chrome, Edge oder Firefox benutzen.",
  },
  too_large: { message: "Eine Nachricht der Seite war zu lang.", hint: RELOAD },
  rate_limited: { message: "Das waren zu viele Anfragen.", hint: "Bitte warten Sie einen Augenblick." },
  no_media: { message: "Ton und Bild kommen nicht durch.", hint: `Eine Firewall kann sie aufhalten. ${AGAIN}` },
  shutting_down: { message: "Der Server wird heruntergefahren.", hint: "Bitte versuchen Sie es gleich noch einmal." },
  internal: { message: "Im Server ist etwas schiefgegangen.", hint: AGAIN },
  unreachable: {
    message: "Der Server antwortet nicht.",
    hint: "Bitte die Verbindung prüfen oder es gleich noch einmal versuchen.",
  },
  no_token: {
    message: "Diese Seite hat keine Erlaubnis zur Teilnahme bekommen.",
    hint: "Bitte melden Sie sich neu an, oder versuchen Sie es gleich noch einmal.",
  },
  connection_lost: { message: "Die Verbindung zum Server ist weg.", hint: "Bitte warten Sie, bis sie wieder da ist." },
  media_failed: { message: "Ton und Bild kommen nicht durch.", hint: `Eine Firewall kann sie aufhalten. ${AGAIN}` },
  moved: { message: "Der Anruf ist auf einen anderen Server umgezogen.", hint: "Die Seite geht gerade dorthin." },
  ended: { message: "Der Anruf ist zu Ende.", hint: "Bitte nehmen Sie neu teil." },
  left: { message: "Sie haben den Anruf verlassen.", hint: "Sie können jederzeit wieder teilnehmen." },
  permission_denied: {
    message: "Der Browser darf das Gerät nicht benutzen.",
    hint: "Bitte Kamera und Mikrofon für diese Seite erlauben, in der Adresszeile oder wenn der Browser fragt.",
  },
  permission_blocked: {
    message: "Das System oder die Seite erlaubt das Gerät nicht.",
    hint: "Bitte dem Browser das Gerät in den Einstellungen des Systems erlauben.",
  },
  device_missing: { message: "Das Gerät ist nicht angeschlossen.", hint: "Bitte anschließen oder ein anderes wählen." },
  device_busy: {
    message: "Das Gerät startet nicht.",
    hint: "Bitte andere Programme schließen, die es benutzen, und es noch einmal versuchen.",
  },
  device_unfit: { message: "Kein Gerät kann, was die Seite braucht.", hint: "Bitte ein anderes wählen." },
  insecure_page: {
    message: "Der Browser gibt dieser Adresse keine Kamera und kein Mikrofon.",
    hint: "Bitte die Seite mit https öffnen.",
  },
  aborted: { message: "Das Gerät wurde angehalten, bevor es lief.", hint: AGAIN },
  sound_blocked: { message: "Der Browser spielt noch keinen Ton.", hint: "Bitte auf die Seite klicken." },
  unsupported: { message: "Dieser Browser kann das nicht.", hint: "Bitte einen anderen benutzen." },
  bad_option: { message: "Die Seite benutzt Windlass falsch.", hint: RELOAD },
  unknown_event: { message: "Die Seite benutzt Windlass falsch.", hint: RELOAD },
};
