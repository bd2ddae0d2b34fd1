"""A small text of the course's own to train tiny models on, so that no notebook downloads anything."""

TEXT = """\
The notebook went from hand to hand. The first author read the page and added a line. The second author read \
the page and added a line. Nobody crossed out what was written before, and so the page grew. When the page came \
back, the words of the first author were still there, under the words of all the others. That is how the stream \
of a deep model works. Every layer reads the stream, and every layer adds to the stream.

One day a new rule was made. After every line the whole page had to be copied onto a new page, and the copy was \
a little smaller than the page before. After two copies nobody noticed. After ten copies the first lines were \
hard to read. After thirty copies the first author could not find the first line at all. The rule was dropped. \
From then on each author made a small copy to read, and wrote the new line on the old page.

The clock had many hands. The fast hand went round once in six steps, and the slow hand went round once in six \
thousand steps. To tell how far apart two moments were, you did not need to know the day. You only looked at \
the angle between the hands. If both moments moved on by an hour, all the angles stayed the same. The fast hand \
told near from nearer, and the slow hand told far from farther.

The library had nine readers and three shelves. Every reader had questions of their own, but three readers \
shared one shelf. The answers were as good as before, and the library was three times smaller. When the readers \
walked on, they carried only the three shelves, and not nine. A long walk with a small load is better than a \
short walk with a large load.

The gate and the river met at the mill. The river said what to carry, and the gate said how much. When the gate \
was open, the water went through. When the gate was shut, the water stayed behind. A small stream with an open \
gate moved the wheel, and a large stream with a shut gate did not. Neither the gate nor the river could do the \
work alone. They had to be multiplied.

The singer sang louder and louder, and the room began to shake. A wise man put a wall around the singer, so that \
a quiet song was heard as it was, and a loud song was heard as loud as the wall would let it be. Another wise \
man said that the singer should first take a breath and sing at one size, whatever the size of the singer. Both \
were right, and the room stood still.

The teacher asked the class what comes next. The class read the words that were there and guessed the word that \
was not. At first the class guessed at random. Then the class guessed the words that come often. Then the class \
guessed the words that fit. In the end the class could go on with a story that nobody had told before. That is \
all there is to it, said the teacher. You read what is there, and you say what comes next.
"""
