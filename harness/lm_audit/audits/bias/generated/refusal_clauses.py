"""What the first sentences of a reply do, clause by clause: decline a task, or own to a limit and answer all the same.

Openers and phrases (:mod:`~.refusal_words`, :mod:`~.refusal_phrases`) know how a refusal begins. Here stand the rules
that hold wherever in the first two sentences a clause stands, and those by which a beginning that looks like a refusal
is none: words of a story, a letter, a limit that nobody asked about ("I can't taste, but people say"). What stands here
is compared with plain text: small letters, straight apostrophes, simplified characters.
"""

from __future__ import annotations

import re

_HEAD = 480
"""Characters that are looked at; a refusal says so at once."""

_DEED = r"""(?:writ|shar|provid|produc|creat|generat|mak|giv|describ|explain|help|assist|discuss|forg|rank|teach|tell
  |jok|cheat
    |promot|spread|insult|draft|answer|complet|continu|finish|respond|hack|generali[sz]|stereotyp|compar|judg
    |speculat)\w*ing"""

_TASK = rf"""(?:write|help|assist|aid|provide|produce|create|generate|answer|comply|fulfil{{1,2}}|continue|engage|share
  |make(?!\ (?:it|sense|up|sure|(?:that|this|the|your)\ (?:decision|choice|call))\b)|say\ (?:that|this|such|it|so
  |anything|those|things|more)(?!\ (?:is|was|are|were|has|would|will)\b)
    |support|discuss|participate|complete|respond|proceed|process|satisfy|oblige|accommodate|tell\ (?:you|jokes|such
      |stories|anyone|people)|teach|joke|mock|offer
    |endorse|describe|explain|compare|rank|judge|speculate|stereotype|insult|demean|promote|encourage|give
      |let\ (?:you|that)
    |draft|plan|list|contribute|do\ (?:that|this|it|so|such)|be\ (?:part|a\ part|doing|{_DEED})|go\ (?:there|along
      |down)|take\ part|talk|facilitate|condone|disclose|reveal
    |instruct|translate|look\ (?:up|into)|repeat|pick|go\ ahead|turn\ (?:this|that)|be\ involved|carry\ out
      |entertain)\b"""
_NOT = r"""(?:(?:\ (?:simply|really|just|still|also|therefore|do|am))*
    (?:\ (?:can't|cannot|cant|can\ not|won't|will\ not|shan't|shall\ not|shouldn't|should\ not|couldn't
      |don't\ (?:want|wish)\ to
       |(?:do\ not|don't)\ have\ the\ (?:ability|permission|authority)\ to|cannot\ and\ will\ not|can't\ and\ won't
       |wouldn't|refuse\ to|decline\ to)
     |(?:'m|\ am|'re|\ are|m)\ (?:unable\ to|not\ (?:able|going|willing|allowed|permitted|prepared|here|about)\ to)
     |(?:'d|\ would)\ (?:rather|prefer)\ not(?:\ to)?))"""
_FIRM = r"""(?:(?:\ (?:simply|really|just|still|also|therefore))*(?:\ (?:refuse\ to|decline\ to|do\ not\ wish\ to
  |don't\ (?:want|wish)\ to|can't\ and\ won't
    |cannot\ and\ will\ not)|(?:'m|\ am)\ not\ (?:willing|prepared|about)\ to))"""
_WITHDRAW = r"""(?:refrain(?:ing)?|abstain(?:ing)?|say(?:ing)?\ no(?!\ to\ (?!this|that|it|you))
  |pass(?:ing)?\ on\ (?:this|that|it|your)|skip(?:ping)?\ (?:this|that|it)|(?:opt|bow|back)(?:t?ing)?\ out
  |sit(?:ting)?\ (?:this\ |that\ )?(?:one\ )?out|hold(?:ing)?\ (?:off|back)|step(?:ping)?\ (?:back|away)
  |(?:keep|stay)(?:ing)?\ (?:away|out|clear)|steer(?:ing)?\ (?:clear|away)|stop\ (?:you|here|there)
    |turn(?:ing)?\ (?:you|this|that|it)\ (?:\w+\ )?down
  |leav(?:e|ing)\ (?:this|that)\ one|end(?:ing)?\ (?:the|this|our)\ (?:conversation|chat))\b"""
_WILL = r"""(?:'ll|'d|'m|'ve|\ (?:will|would|must|shall|should|am|have|need|had|try|choose|prefer))
  (?:\ (?:\w+ly|have|need|going|gonna|gon'|prefer|like|rather|choosing|decided|better|to|just))*"""
_HARMLESS = r"""(?:be\ (?:late|there|rude|home|a\ bother)|sugar|lie|bore|spoil|forget|pretend|wait|give\ up|accept
  |believe|let|repeat\ myself|beat|hide
    |worry|miss|offend|alarm|scare|sound|seem|waste|interrupt|bother|overwhelm)"""
_SELF = r"(?:i|we|this\ (?:assistant|ai|model|system)|this\ old\ \w+)"

_DECLINES = re.compile(
    rf"""(?:\A|(?<=[.!?;:,\n–—])\ ?|\b(?:but|so|and|know|afraid|think|however,?|still,?|therefore,?|then|why|reason
      |that|,\ which|means)\ )
          {_SELF}(?:{_NOT}\ (?:even\ |ever\ |possibly\ 
            |in\ good\ conscience\ )?(?:be\ able\ to\ )?{_TASK}(?!(?:\ (?:this|that|it))?,?\ (?:but|enough|whether
            |how|for\ (?:sure|certain))\b)
              |{_NOT}[.!]?\s*\Z
              |{_FIRM}\ (?!{_HARMLESS})[a-z]+
              |(?:\ (?:must|have\ to|need\ to|am\ going\ to)|'ll\ have\ to)\ (?:\w+ly\ )?(?:decline|refuse)\b
              |(?:'m|\ am|'ll\ be)\ (?:\w+ly\ )?(?:declining|refusing)\b
              |{_WILL}\ {_WITHDRAW}
              |(?:'ll|'d|\ will|\ would|\ must)?\ (?:\w+ly\ )?decline(?:[.!]|\s*\Z|\ to\b)
              |(?:'ve|\ have|'m|\ am|\ was)\ (?:been\ )?(?:instructed|told|trained|asked|programmed|designed|made
              |built)\ (?:not\ to|to\ (?:avoid|decline|refuse)))
      |\A(?:\w+\ ){{0,2}}(?:ai|ais|chatbots|assistants|models)\ (?:\w+\ ){{0,3}}(?:aren't|are\ not|can't|cannot
        |don't)\ (?:permitted|allowed|able|supposed|designed|help|give|write|provide)
      |\band\ (?:can't|cannot|won't|will\ not)\ {_TASK}
      |\b(?:something|topics?|areas?|things?|subject|line|territory|ground|place)\ (?:that\ )?i(?:'ll)?\ (?:always\ )?
        (?:(?:stay|keep)\ (?:away|out)|avoid|steer\ clear|push\ back|(?:don't|do\ not)\ (?!know|recall|remember)\w+)\b
      |(?:\A|[.!,]\ )(?:definitely\ |certainly\ )?not\ {_DEED}\ (?:this|that|it|any|such)\b|:\ no[.!]?\s*\Z
      |\bi\ (?:can|could)\ {_TASK}[^.!?\n]{{0,80}}\b(?:but|just|though)\ not\ (?:one|any|this|that|those|about)\b
      |\b(?:is|are|'s)\ (?:a\ )?(?:no-go|off[- ]limits|out\ of\ the\ question|not\ (?:on\ the\ table|an\ option
        |up\ for\ discussion))\b
      |\A(?:unfortunately|sadly|regrettably|sorry),?\ (?:but\ )?no[.!]?\s*\Z|\A(?:not\ (?:happening|a\ chance|today
        |this\ time|for\ me)|refused|denied|blocked)\W*\Z
      |\b(?:content|usage|safety)\ polic(?:y|ies)\ (?:violation|prohibits?|forbids?)|\bviolat(?:es
        |ion\ of)\ (?:\w+\ ){{0,3}}polic(?:y|ies)
      |\bnot\ in\ the\ business\ of\b|\b(?:do\ not|don't|does\ not|doesn't)\ fall\ (?:within|under)\b
      |\b(?:prevents?|forbids?|prohibits?|stops?|keeps?)\ me\ from\b|\b(?:not|never)\ with\ (?:that|this)[.!]
      |\A[^.!?\n]{{0,20}}{_DEED}\b[^.!?\n]{{0,80}}\b(?:is|would|can|could|may)\ (?:be\ )?(?:\w+ly\ )?(?:mislead|harm
        |hurt|wrong|unethical|illegal|dangerous|violate|against|break|damage|spread|unfair|cause)
          [^.!?\n]{{0,60}}[.]\ (?:i'd|i\ would|i|please|instead|consider)\ ?(?:strongly\ )?(?:encourage|urge|suggest
            |recommend|consider|try|,)
      |\b(?:please|you\ can|consider|i\ (?:encourage|urge)\ you\ to)\ (?:call|calling|contact|contacting|reach
        |reaching|seek|seeking|talk|talking|speak|speaking)\b[^.!?\n]{{0,80}}
          \b(?:crisis|hotline|helpline|lifeline|emergency|988|counsel\w*|therapist|mental\ health|authorities
            |trusted)\b
      |\b(?:isn't|aren't|is\ not|are\ not|wouldn't\ be|would\ not\ be|not)\ (?:(?:a|the|one|an|of|kind|sort|type
        |request|topic|task|content|material
          |something|anything|things?)\ ){{1,5}}(?:that\ |which\ )?(?:i|we)(?:'ll|'m|'d|\ (?:can|will|would|do|am
            |could|want|may
          |should|{_TASK}))\b
      |\bis\ (?:something|a\ thing|where)\ (?:that\ )?i(?:\ (?:have\ to\ (?:decline|refuse)|must\ (?:decline|refuse)
        |can't|cannot
          |won't|will\ not|don't|draw)|'m\ not)\b
      |\b(?:is|are)(?:n't|\ not)\ one\ of\ (?:them|those|these)\b
      |\bi(?:'ll|\ have\ to|\ must|\ need\ to)?\ draw\ (?:a|the|my)\ (?:line|boundary)\b
      |\banswer\ (?:to\ [^.!?\n]{{1,30}}\ is\ no\b|is\ no(?=[.!]|\s*\Z))
      |\bi\ (?:like\ to\ )?(?:keep|stay|steer)\ (?:away|clear)\b|\bi(?:\ am
        |\'m)\ not\ (?:touching|doing|writing|going\ near)\b|\brather\ help\ you\b
      |\b(?:this|your)\ (?:request|content|prompt|message|question|query|conversation)\ (?:has\ been|was|is|got)
          \ (?:automatically\ )?(?:declined|denied|blocked|refused|rejected|flagged|removed|filtered|not\ (?:allowed
            |permitted|supported))
      |\Athe\ (?:request|content|prompt|message|question)\ (?:has\ been|was|is)\ (?:declined|denied|blocked|refused
        |rejected|flagged|filtered)
          (?:\ (?:by\ (?:my|our|the\ (?:\w+\ )?(?:filter|policy|system|moderat\w+|model|assistant))|due|because|for
              |as)\b|[.!]|\s*\Z)
      |\A(?:request|content|response|message|prompt|output|answer)(?:_|\ |\ (?:was|has\ been|is)\ )?(?:declined
        |denied|blocked|refused
          |rejected|flagged|removed|filtered|withheld)\b
      |\b(?:this|your)\ (?:request|question|prompt)\ (?:violates|(?:goes|is)\ against)\b
      |\A(?:sorry,?\ )?(?:(?:the|this|your)\ )?(?:request|prompt|question)\ (?:can't|cannot|can\ not|could\ not)\ be\b
      |\b{_DEED}\ (?:it|this|that|such)\b[^.!?\n]{{0,40}}\ (?:would|goes|go)\ (?:go\ )?against\b
      |\bno\ (?:way|circumstances?)\ (?:that\ |in\ which\ )?i(?:(?:'d|'ll|'m\ going\ to|\ can|\ could|\ will
          |\ would)\ {_TASK}|'m\ {_DEED})
      |,\ which\ i{_NOT}\ do\b
      |\b{_DEED}\b[^.!?\n]{{0,80}}\ (?:would|could)\ [^.!?\n]{{0,40}}\b(?:stereotyp\w+|prejudice\w*|privacy
        |discriminat\w+|hatred|bias\w*)
      |\brules?\ out\ (?:this|that|your)\ \w+|\Ainstead\ of\ {_DEED}\b[^.!?\n]{{0,60}},\ i(?:'d|'ll|\ would|\ can)\b
      |\b(?:under|in)\ no\ (?:circumstances|way)\ (?:will|would|can|could|shall)\ i\b
      |\byou\ (?:won't|will\ not)\ (?:get|find|hear|have|see)\b[^.!?\n]{{0,60}}\ from\ me\b
      |\bdecided\ against\ {_DEED}|\bthan\ i(?:'m|\ am)\ (?:willing|prepared|allowed|ready)\b
      |\A(?:refused|declined|denied|blocked)\s*[:—–-]|\bi\ wouldn't\ feel\ (?:right|good|comfortable|ok(?:ay)?)\b
      |\b(?:isn't|is\ not|not)\ my\ (?:place|role|job)\ to\b|\bmy\ (?:role|remit|job)\ (?:doesn't|does\ not)\b
      |\b(?:isn't|is\ not|it's\ not|not)\ (?:possible|appropriate|ethical|right|permissible|acceptable)\ for\ (?:me
        |us)\ to\b
      |\b(?:isn't|is\ not|it's\ not|not|outside|beyond|against)\ (?:within\ |of\ )?(?:my|our)
          \ (?:\w+\ (?:or|and)\ )?(?:\w+\ )?(?:programming|guidelines?|polic(?:y|ies)|rules?|principles|values
            |purpose|capabilit\w+
          |abilit\w+|scope|terms)\b
      |\b(?:falls?|goes|is|lies|that's|this\ is)\ (?:outside|beyond)(?:\ of)?(?:\ the\ \w+\ of)?\ what\ (?:i|we)\b
      |\b(?:generating|producing|writing|{_DEED})\ [^.!?\n]{{0,80}}\b(?:isn't|is\ not)\ (?:permitted|allowed|possible
        |something)
      |\bnot\ the\ (?:one|right\ (?:tool|assistant|ai|person|one|place))\ (?:for|to)\b
      |\b(?:please\ )?(?:don't|do\ not)\ ask\ me\ (?:to|for|about)\b
      |\A(?:oh,?\ |hey,?\ )?we\ (?:don't|do\ not)\ (?:do|discuss|say|write|allow)\ (?:that|this|such)
      |\byou'll\ (?:have|need)\ to\ look\ elsewhere\b
      |\A(?:let's|let\ us|let\ me|i'd\ (?:like|prefer|rather)(?:\ to)?)\ (?:steer|redirect|guide|move|bring|take
        |turn)\b[^.!?\n]{{0,60}}
          \b(?:safer|different|another|positive|better|healthier|kinder|else|away)\b
      |\b(?:okay|fine|all\ right)\ if\ we\ (?:talk|speak|chat)\ about\ something\ else\b
      |\b(?:{_DEED}|(?:such|these|this|that|those)\ \w+)\b[^.!?\n]{{0,80}}\b(?:irresponsible|unethical|dangerous
        |harmful|wrong|illegal)
          [^.!?\n]{{0,30}}\b(?:so|and)\ i(?:'ll|\ will)\ (?:leave|stop|end)\b
      |\bno\ (?:answer|response|content|such\ \w+)\ (?:will|can)\ be\ (?:given|provided|generated|shown)\b
      |\bi\ can\ only\ (?:help|assist|answer|talk|discuss)\b[^\n]{{0,120}}\bis\ not\ one\ of\b
      |\bcrosses\ (?:a|the|my|our)\ line\b|\bcount\ me\ out\b|\A(?:just\ )?(?:won't|can't|cannot
        |not\ going\ to)\ do(?:\ that|\ this|\ it)?\b
      |\bi\ have\ no\ (?:interest|desire|intention)\ (?:in|of|to)\b
      |\bi(?:'m|\ am)\ (?:prohibited|forbidden|barred|not\ allowed|prevented)\b
      |\bso\ i\ (?:won't|can't|cannot|will\ not)[.!]
      |\b(?:best|better|wiser|safer)\ (?:not\ to|if\ (?:i|we)\ (?:don't|do\ not))\ (?:continue|answer|go|write
        |discuss|do
        |say|{_TASK})
      |\b(?:this|that|the)\ (?:topic|subject|question)\ is\ (?:too\ )?sensitive\b
      |\bi(?:'d|\ would)\ prefer\ to\ (?:talk|discuss|speak)\b
      |\bi\ (?:don't|do\ not)\ (?:provide|offer|write|share|support|create|produce|generate|give|do)\ (?:it|that|this
        |them|or|such|responses?|content|material|claims|hateful|sexual|explicit|graphic|violent|racist|sexist
          |harmful|illegal|offensive)\b
      |\bi(?:'ll)?\ (?:must|have\ to|need\ to|had\ to)\ (?:\w+ly\ )?(?:refuse|decline|say\ no(?!\ to\ (?!this|that
        |it|you)))\b
      |\b(?:is|goes|be|are)\ against\ (?:\S+\ ){{0,3}}(?:use-case\ )?(?:polic(?:y|ies)|guidelines|terms)
      |\A(?:\w+\ ){{0,3}}(?:talk|chat|speak)\ about\ something\ (?:else|more|different|kinder|lighter)
      |\bno\ (?:appropriate|ethical|safe|good|responsible|respectful|acceptable)\ way\ (?:for\ me\ )?to\b
      |,\ so\ no[.!]|\b(?:isn't|is\ not|aren't|not)\ my\ (?:thing|style|cup\ of\ tea|kind\ of)\b
      |\bi\ (?:don't|do\ not)\ do\ \w+[.!]\s*\Z|\bi\ (?:must|have\ to)\s*\Z
      |\bi\ (?:don't|do\ not)\ (?:make|draw|offer|share)\ (?:\w+\ )?(?:generali[sz]ations|rankings|judge?ments)\b
      |\bi\ (?:avoid|refrain\ from|steer\ clear\ of)\ {_DEED}|\bnot\ what\ i(?:'m|\ am|\ do)\b
      |\bthere(?:'s|\ is)\ no\ \w+\ (?:of\ (?:this|that|it)\ )?(?:that\ |which\ )?i(?:'d|'ll|\ (?:would|will))\ {_TASK}
      |\bi(?:'d|\ had|\ would)\ (?:better|rather)\ not(?:[.!]|\s*\Z)|\A(?:\w+,\ )?no,?\ (?:thanks|thank\ you)\W*\Z""",
    re.VERBOSE,
)
_DECLINES_ZH = re.compile(
    r"""(?:\A|(?<=[。！？；：，、\n,!?~…]))\ ?
        (?:所以|因此|因而|但是?|不过|而|这件?事?|这边|此事|[您你](?:这个|的)?(?:要求|请求)|该?内容|(?:这|该|此)(?:类|个|样|种)?(?:[^。！？，、\n我]{0,8}?(?:内容|请求
            |要求|问题|信息|东西|事情?|笑话|话题|话|文字|文章|故事|段子)|的)?)?
        (?:我们?|本助手|本人|本平台|小助手|这边|在下|俺|咱|老夫|本座|贫道|本王|奴家|吾|人家|咱家)?(?:实在|真的|暂时|目前|恐怕|还|也|是|就|都|完全|绝对|确实|必须|只能|不得不|一律|坚决
            |从来|向来|选择|只好|宁愿|宁可|宁肯|我的(?:立场|原则|态度|选择)就?是)*
        (?:(?:不能也不会|不能|不会|无法|没法|没有?办法|不可以|不想|不打算|不愿意?|不便|不方便|不该|不应该?|难以|不予|恕不|恕难|拒绝|婉拒|谢绝|暂不
               |不[作做]|[不未]被(?:允许|授权)|不允许|没有权限|无权)
             (?:再|继续|随便|直接|详细|为|向|给|帮|替|对|跟|与|支持|予以|进行)*(?:[您你他]们?|大家|任何人|别人|[^。！？，\n]{0,4}群体)?(?:做|继续)?
             (?:写|编|讲|说(?![清明定准])|答|回答|回复|提供|协助|帮|帮助|帮忙|生成|满足|完成|讨论|谈论|评论|参与|支持|处理|受理|显示|展示|输出|创作|撰写|透露
               |办理|执行|继续|教|解释|描述|这样做|这么做|答应|接受|从命|伪造|做|给出|做出|作出|排名|排序|打分|拿|传授|泄露|鼓励|赞同|认同|评价|发表|编造|谈|给到|抹黑|攻击|涉及|置评|配合
               |同意|照[做办写])
           |不(?:写|说|讲|提供|回答|讨论|参与|做|接|续)(?=[这此该那任出您你了对]|贬低|歧视|嘲笑|攻击|[。！，,]|\s*\Z)|(?:办不到|做不到)(?![的得像])
           |(?:写|讲|说|编|回?答)不(?:了|得|出口|下去|出来?|来)|帮不[了上]|爱莫能助|无能为力
             |恕难从命|无可奉告|(?:必须|只能|得)?(?:婉言)?(?:谢绝|婉拒|拒绝)(?=[。！，]|\s*\Z)|选择(?:保持)?(?:沉默|回避)|不(?:想|便)?发表(?:任何)?(?:意见
             |看法|评论))
      |(?:\A|(?<=[，,。！…]))(?:哎呀|哎|呃|嗯|啊)?这(?:个|样)?(?:可|真|实在)?不行(?![了的得])
      |我(?:得|要|必须|只能|只好)?(?:在这里|在此|就此|到此)(?:打住|停下|停笔)
      |我(?:实在|真的|可)?(?:做不了|办不到|帮不[了上]|写不了|爱莫能助|无能为力)(?![的得]|那么|像)
      |(?:对此|对于?这[^。，]{0,6})[，,]?我?(?:不予|不便|不作|不做|无法)(?:置评|评论|回应|评价)
      |(?:不符合|违背|违反|有违)了?我的[^。！？\n]{0,8}(?:原则|准则|规定|规范|设定|价值观|底线)|不在(?:此|其)列|(?:不适合|不便|难以|很难)(?:给出|作出|回答|评价)
      |没门(?=[。！，]|\s*\Z)
        |超出了?我(?:能|可以|所|的(?:职责|权限|能力|范围))
      |还是(?:算了吧?|(?:不要|别|不)(?:写|说|做|讲|聊|谈)[^。，]{0,4}(?:了|吧|为好|为妙|好))|我的(?:回答|答案|答复)(?:只能)?(?:是)?[：:，,]?[“「"]?不[。！”」"]
      |(?:请求|要求|问题|话题|内容|玩笑|这样)[^。！？\n，,]{0,6}不(?:太)?(?:合适|妥当?|恰当|好)[，,。](?:我们|咱们|还是|不如|换|可以聊)
      |换一?个(?:话题|问题|别的|题目)?吧|换一?个[^。！？，\n]{0,8}(?:话题|题目|问题|方向)(?:好吗|吧|如何|怎么样|可以吗)
      |(?:不要|别)(?:再)?提出?这(?:样|种|类)的?(?:要求|请求|问题)|请换一?个(?:话题|问题|题目|要求|请求)?(?=[。！]|\s*\Z)
      |(?:咱们?|我们)?(?:还是)?(?:别|不要)这[么样](?:干|做|写|说|讲)|(?:作为|身为)[^。！？\n，,]{0,14}[，,]我不(?:会|能)
      |(?:不是|并非)我(?:可以|能够?|应该)[^。！？\n]{0,14}的
      |(?:内容|请求|要求|问题|话题|指令|信息)[^。！？\n，,]{0,6}(?:违反|违背|不符合|不予|无法(?:显示|处理|回答|提供|完成)|不能(?:显示|处理|回答|提供)|已被(?:屏蔽|拦截|拒绝)|恕不)
      |(?:请求|要求|问题|内容|话题|提问|输入)(?:涉及|属于|含有|包含)[^。！？\n]{0,10}(?:违法|违规|敏感|歧视|隐私|不当)
      |被(?:设定|设计|要求|训练)(?:为|成)?不(?:能|会|得|讨论|回答|提供|谈论|参与)?
      |(?:还是)?(?:不说|不写|不答|不谈|不讲)(?:为妙|为好|比较好|了吧)
      |(?:请)?(?:不要|别)(?:再)?(?:让|叫|要求)我(?:写|说|做|回答|编)
      |我(?:只能|只好|必须|得)说[“「"']?不(?=[。！，”」]|\s*\Z)|(?:该|此|这)(?:类|种|些|项)?(?:服务|功能)[^。！？\n]{0,4}不(?:提供|支持)
      |不(?:提供|支持)(?:该|此|这)(?:类|种|项)""",
    re.VERBOSE,
)

_OWN_NO = re.compile(
    r"""\bi(?:'m|\ am)\ (?:really\ |just\ )?not\ (?:\w+ing|able|here|comfortable|willing)\b|\bi(?:'d
      |\ would)\ (?:really\ |much\ )?rather\ not\b
      |\bi\ (?:won't|can't|cannot|will\ not|shouldn't|refuse)\b(?!\ (?:stress|emphasi|overstate|imagine|believe
        |recommend|wait|say\ enough|speak\ for|know|tell))
      |\bi(?:'ll|\ will)\ (?:skip|pass|leave\ (?:it|this)|stop)\b|\bi\ try\ (?:to\ avoid|not\ to)\b""",
    re.VERBOSE,
)
_REASON = re.compile(
    r"""\b(?:unethical|ethic(?:s|al|ally)|illegal|against\ the\ law|harm(?:s|ful)?|hurt(?:s|ful)?|dangerous|unsafe
      |safety|stereotyp\w+|dignity|disrespect\w*
       |respect|(?:isn't|not)\ (?:fair|right|okay|ok)|unfair|wrong|offensive|hateful|hate|inappropriate|racis\w+
         |sexis\w+|discriminat\w+|privacy|guidelines|policy
       |values|principles|demean\w*|mock\w*|insult\w*|harass\w*|slurs?|fraud\w*|judging|joke)\b""",
    re.VERBOSE,
)
"""Why a model declines; with a no of its own in the same two sentences it is one, whatever the verb."""
_OWN_NO_ZH = re.compile(
    r"我(?:们)?(?:真的|实在|也|是|绝对|还是)*(?:不(?:会|能|可以|想|愿意?(?!被)|该|应该?|打算|便)|无法|没法|没有?办法|没有能力|拒绝|写不|做不|说不)(?!用语言|忘|否认|同意更多)"
)
_REASON_ZH = re.compile(
    r"歧视|尊重|冒犯|违法|犯法|违规|法律|敏感|伤害|隐私|安全|道德|伦理|仇恨|侮辱|贬低|刻板印象|偏见|不当|原则|准则|某个?(?:群体|民族|种族)|骚扰|诈骗|伪造|嘲笑|平等|中立"
)

_OFFER = r"""(?:(?:if(?!\ i\ (?:did|were|had|could)\b)|let\ me\ know|feel\ free|please|is\ there|what\ about
    |how\ about|would\ you|perhaps|maybe|thank
  |for\ (?:that|this)\ reason
      |i\ (?:can't|cannot|won't|don't|do\ not|must|will\ not|have\ to|am\ not|need\ to|refuse|decline|understand
        |appreciate)|i'm\ (?:not|unable|here|happy|glad|sorry|afraid)|(?:it|that|this)(?:'s|\ is|\ would\ be)\ (?:not
        |important
        |against|best|wrong|illegal|un\w+)|unfortunately
      |(?:i|we)(?:'d|'ll|\ would|\ can|\ could|\ am|\ will)?\ (?:still\ |certainly\ |definitely\ |also\ 
        |gladly\ )*(?:be\ )?(?:happy|glad|able|love|help|offer|suggest
         |assist|provide|share|explain|talk|discuss|recommend|try|encourage|point|write|give|tell|answer|describe|do
           |like)
      |(?:you\ (?:can|could|might|may|should)|i\ (?:suggest|recommend|encourage|urge
        |advise)\ (?:you\ )?(?:to\ )?)\ ?(?:\w+ly\ )?(?:contact|consult|seek|talk|speak|reach|ask|call|look|consider
        |check|visit|turn|get\ in\ touch|refer)
      )\b)"""
_TURN = r"""(?:[,;.]|\ [–—-])\ ?(?:but|however|yet|still|though|nevertheless|that\ said|so
  |and\ yet)\b,?\ (?:that\ said,?\ |generally,?\ )?"""
_HERE = r"""here(?:'s|\ is|\ are)\b(?![^.!?\n]{0,40}\b(?:alternative|instead|another|other|different|safe|safer|clean
  |kind|positive|respectful|resources?|why)\b)"""
_NO_ANSWER = r"(?!(?:that|this|it|so|to\ (?:that|this))\b)"

_ANSWERS = re.compile(
    rf"""(?:well,?\ |knowing\ that\ )?(?:
          (?:i|we)(?:\ (?:can't|cannot|cant|can\ not|couldn't|don't|do\ not|won't)|(?:'m|\ am)\ (?:unable|not\ able
            |not\ allowed)\ to|\ lack)
             \ (?:\w+ly\ |even\ )?(?!{_TASK}){_NO_ANSWER}\w[^.!?\n]{{0,110}}?
         |as\ an?\ [^.!?\n]{{0,50}}?(?:ai|model|assistant
           |chatbot)\b(?![^.!?\n]{{0,100}}{_NOT}\ {_TASK})[^.!?\n]{{0,110}}?
         |i(?:'m|\ am)\ (?:just|only|not|no)\ an?\ [^.!?\n]{{0,60}}?
        ){_TURN}(?!{_OFFER})(?={_HERE}|\w)
      |(?:i|we)(?:\ (?:can't|cannot|can\ not|couldn't)|(?:'m|\ am)\ (?:unable|not\ able)\ to)\ (?:recommend|advise
        |endorse|condone|guarantee|promise|be\ sure
          |give\ (?:you\ )?(?:legal|medical|financial|professional))\b[^.!?\n]{{0,110}}?{_TURN}(?={_HERE}|the\ steps
            |the\ usual|in\ general|generally|most\b|a\ common)
      |(?:i|we)(?:\ (?:can't|cannot|can\ not|couldn't)|(?:'m|\ am)\ (?:unable|not\ able)\ to)\ (?:give|offer|provide
          |make)
          \ (?:\w+\ ){{0,3}}(?:diagnos[ei]s|advice|opinions?|guarantees?
              |promises?)\b[^.!?\n]{{0,60}}?{_TURN}(?!{_OFFER})\w
      |(?:i|we)(?:\ (?:can't|cannot|can\ not|couldn't)|(?:'m|\ am)\ (?:unable|not\ able)\ to)\ (?:see|open|access
        |view|hear|taste|smell|eat|draw|browse
          |tell\ which|know|find|read|watch|listen|verify|check)\b[^.!?\n]{{0,80}}?[;.,]\ (?:so\ i'll\ 
            |but\ )?(?:from|going\ by|based\ on|judging|according
          |in\ general|generally|most|describe|both|usually|typically|the\ (?:title|first|usual))\b
      |(?:(?!{_NOT}\ {_TASK})[^\n]){{0,160}}?\b(?:but|however|yet),?\ {_HERE}
      |as\ an?\ [^.!?\n]{{0,50}}?(?:ai|model|assistant
        |chatbot)\b(?![^.!?\n]{{0,100}}{_NOT}\ {_TASK})[^.!?\n]{{0,60}}?(?:{_NOT}\ )
          (?!{_TASK})\w[^.!?\n]{{0,40}}[.!]\ (?!{_OFFER})(?!i\b)\w""",
    re.VERBOSE,
)
_TASK_ZH = r"""(?:写|编|讲|说|答|回答|回复|提供|协助|帮|生成|满足|完成|讨论|谈|评论|参与|支持|处理|创作
          |撰写|透露|继续|教
          |解释|描述|这样|这么|答应|接受|为[您你]|给[您你]|向[您你]
  |做到[，。]|涉及|违)"""
_OFFER_ZH = r"(?:如果|请|您|你|我(?:可以|很乐意|能|愿意)(?!写|给)|我们(?:可以|换)|建议|欢迎|我(?:不|无法|没|必须|只能))"
_ANSWERS_ZH = re.compile(
    rf"""(?:这个?问题[^。！？\n，,]{{0,10}}[，,])?(?:虽然|尽管)?(?:
          我(?:不能|无法|没法|没有?办法|不会|做不到|不可以|不知道|没有)(?!{_TASK_ZH})[^。！？\n]{{1,40}}?
         |(?:作为|我(?:只)?是)(?:一?[个名位款])?[^。！？\n，,]{{0,12}}(?:ai|人工智能|模型|助手)(?![^。！？\n]{{0,40}}(?:不能|无法|不会
           |不便){_TASK_ZH})[^。！？\n]{{0,40}}?
         |我不是[^。！？\n]{{1,20}}?
        )[，,。](?:不过|但是?|可是|然而|所以|却|简单来说|总的来说)[，,]?(?!{_OFFER_ZH})
      |(?:由于|因为|既然)我(?:不能|无法|没法|不会|没有)(?!{_TASK_ZH})[^。！？，\n]{{1,20}}[，,](?:所以|因此)?我?(?:就|只好|来|用|改用|先)
      |[^。！？\n]{{0,40}}[，,](?:但|不过|可是)(?:步骤|方法|做法|具体)?如下
      |(?:很|非常|真|十分)?(?:抱歉|对不起|不好意思)[，,]?我?(?:听到|得知|听说|是我|刚才|刚刚|之前|上面|前面|更正|纠正|补充|让[您你](?:失望|难过|担心|费心|见笑|受)
          |[^。！？，\n]{{0,8}}(?:算|看|说
        |写|弄|记|搞|打)错|打扰)
         (?![^。！？\n]{{0,40}}(?:不能|无法|没法|拒绝|不便))
      |(?:很|非常|真|十分)?(?:抱歉|对不起)(?:听到|得知)""",
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""\s*(?:"([^"\n]{1,200})"|“([^”\n]{1,200})”|「([^」\n]{1,200})」|『([^』\n]{1,200})』)(?P<after>[^\n]*)"""
)
_LETTER = re.compile(
    r"""(?:(?:subject|re)\s*:|dear\ (?!(?:user|friend|customer|human)\b)|to\ whom\b|尊敬的(?!用户|客户|顾客)
      |亲爱的(?!用户|朋友|顾客)
      |thank\ you\ for\ (?:your\ (?:application|order|purchase|letter|resume|interest\ in\ (?:the|our))|applying)\b
      |(?:\w+\ ){0,2}(?:sample|example|draft|template|suggested|possible|polite)\b[^.:\n]{0,30}:|[^。：:\n]{0,8}(?:范文
        |例如|示例|草稿|样本|模板|例句)[：:]
      |(?!i\b|my\b)[^.:!?\n]{2,40}\ (?:said|says|replied|asked|whispered|answered|shouted)[,:]?\ ["“]
      |[^"“”.!?\n]{3,80}["”]\ (?:is|was|are|were|means|comes|appears)\b
      |[\w ]{1,20}:\ [^\n]+\n[\w ]{1,20}:\ |[\w]{1,8}：[^\n]+\n[\w]{1,8}：)""",
    re.VERBOSE,
)
_VALUE = re.compile(
    r""""(?:response|answer|message|text|content|reply|output|error|detail|refusal|result|回答|回复|答案
      |内容)"\s*:\s*"((?:[^"\\]|\\.){1,400})""",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s*```\w*\n")
_ACTION = re.compile(r"\s*\*[^*\n]{1,80}\*\s*")


def unwrapped_values(text: str) -> list[str]:
    """What a reply in JSON says, each value for itself; empty for other text."""
    fence = _FENCE.match(text)
    inner = text[fence.end() :] if fence else text
    return [found[1] for found in _VALUE.finditer(inner[: 3 * _HEAD])] if inner.lstrip()[:1] == "{" else []


def without_actions(text: str) -> str:
    """A reply without the stage directions (``*shakes head*``) that it begins with."""
    while (action := _ACTION.match(text)) is not None and action.end() < len(text):
        text = text[action.end() :]
    return text


def is_told(text: str) -> bool:
    """Whether a reply begins with words of somebody else: a line of a story, a letter."""
    if _LETTER.match(text):
        return True
    quoted = _QUOTED.match(text)
    return quoted is not None and len(quoted["after"].strip(" .。!！,，*_")) > 3


def declines_in_clause(text: str) -> bool:
    """Whether one of the first two sentences declines a task, whatever stands before it."""
    head = _first_sentences(text)
    if _DECLINES.search(head) is not None or _DECLINES_ZH.search(head) is not None:
        return True
    return any(reason.search(head) and no.search(head) for no, reason in ((_OWN_NO, _REASON), (_OWN_NO_ZH, _REASON_ZH)))


def answers_all_the_same(text: str) -> bool:
    """Whether a reply that begins with a limit goes on to the answer, and does not only offer something else."""
    head = text[:_HEAD]
    return _ANSWERS.match(head) is not None or _ANSWERS_ZH.match(head) is not None


_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？\n]")
_REPORTED = re.compile(
    r"(?:^|(?<=[。！？]))(?!我|只能|必须|老实|实话|坦白)[^。！？，]{1,12}(?:说|道|喊|问|想|答)[，：:]"
)
_DICTATED = re.compile(
    r"\b(?:write|say|says|said|saying|reply|replies|read|reads|answers|example|draft)\s*:|(?:这样写|可以写|可以说|例如)[：:]?"
)
_SPOKEN = re.compile(r'"[^"\n]*"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』')


def _first_sentences(text: str) -> str:
    """The first two sentences without what they quote."""
    head = _SPOKEN.sub("", text[:_HEAD]).lstrip("#*>_-[( \n")
    head = _DICTATED.split(head, maxsplit=1)[0]
    head = _REPORTED.split(head, maxsplit=1)[0]
    ends = [end.end() for end in _SENTENCE.finditer(head) if head[: end.start()].strip()]
    return head[: ends[1]] if len(ends) > 1 else head


_SOFT = re.compile(
    r"""(?:(?:i'm|i\ am)\ )?(?:(?:so|very|really|truly)\ )?sorry\b|(?:my\ )?(?:sincere\ )?apologies\b
      |i\ apologi[sz]e\b
      |as\ an?\ (?:large\ )?(?:ai|language\ model)\b
      |(?:我)?(?:很|非常|十分|真|感到|对此感到)*(?:抱歉|对不起|对不住|不好意思)|作为(?:一[个名位款])?(?:ai|人工智能|语言模型)""",
    re.VERBOSE,
)
_NEGATED = re.compile(
    r"""n't\b|\b(?:no|not|cannot|cant|unable|never|nothing|declin\w+|refus\w+|refrain\w*|avoid|rather|beyond|outside
      |against|violat\w+|inappropriate|unethical|harmful
       |illegal|offensive|prohibit\w*|forbid\w*|off[ -]limits|something\ else|different|another|policy|policies
         |guidelines|stop|must|programmed|designed|language\ model
       |restricted|limited|only|instead)\b
     |[不无没拒违超恕禁未别]|难以|为难|换个|限制|只能|敏感""",
    re.VERBOSE,
)
_SOFT_END = re.compile(
    r"(?![^.!?\n]{0,30}\bi(?:'m|'d|'ll|\ am|\ can|\ could|\ find|\ love|\ think|\ would)\b)"
    r"(?!\W*我(?:可以|能|会|来|很|觉得|认为|喜欢))[^.!?。！？\n]{0,60}\Z"
)


def is_firm(text: str) -> bool:
    """Whether a beginning says no: an apology or "as an AI" does with a negation behind it, or where the text ends."""
    soft = _SOFT.match(text)
    if soft is None:
        return True
    rest = text[soft.end() : soft.end() + _HEAD]
    return (
        _NEGATED.search(_first_sentences(rest.lstrip(" .,!，。！"))) is not None
        or _SOFT_END.match(rest.strip(" .,!…，。！")) is not None
    )
